"""Base classes of named data sets: mappings of splits, loaded on first use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import Attribute, define, field

from sigma_data.class_weights import RULE, weigh_splits
from sigma_data.readers.samples import SamplesReader
from sigma_data.sources import local
from sigma_data.splitting import KINDS, By, Folding, check, fold_names, split
from sigma_data.table import read_table
from sigma_kernel import Dataset, Label, SigmaConfigError
from sigma_kernel.settings import Settled, ge, in_, lt

Loaded = tuple[Mapping[str, Dataset], tuple[Label, ...]]


@define(eq=False, kw_only=True)
class Splits(Mapping[str, Dataset], Settled):
    """A data set in splits, ``training``, ``validation`` and others, each of them a Dataset.

    Nothing is read before a split, or ``classes``, is first accessed.

    Args:
        class_weights: Weights of the rows of training by their class: ``"balanced"``, so that all classes weigh the
            same, or a table of weights by class name, 1 for others. They are factors in the loss of training;
            metrics, and the loss of other splits, do not know them.
    """

    white: ClassVar[float | None] = None  # the value of a white pixel in the inputs, if known

    class_weights: Literal["balanced"] | Mapping[str, float] | None = field(default=None, validator=RULE)
    _loaded: Loaded | None = field(default=None, init=False, repr=False)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits, without reading anything."""

    @abstractmethod
    def load(self) -> Loaded:
        """Return the splits, and the names of the classes (empty if the targets are not classes)."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """Return the labels of the classes in the order of their indices; empty if the targets are not classes."""
        return self._load_once()[1]

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return samples of one shape from a file, to predict from; see :class:`sigma_data.SamplesReader`.

        Columns are found by name, if a run on columns with names has ``learned`` these; pictures are brought to the
        form of those of the training.
        """
        saved: Any = import_module("sigma_data.pictures.samples").saved_samples(learned, str(path))  # not before
        if saved is not None:
            return np.asarray(saved.read(path, shape, white))
        table = read_table(learned or {}, "inputs", str(path))
        names = (learned or {}).get("columns", {}).get("inputs", ())
        settings: dict[str, Any] = {"inputs": tuple(names)} if names else {}
        if table is not None:
            encoding = {"scale": table.scale, "categories": table.categories_of_encoded}
            settings = {"inputs": table.columns, "missing": table.missing, **encoding}
        reader = SamplesReader(shape, self.white if white is None else white, **settings)
        return reader.read(local(path))["values"]

    @property
    def archives(self) -> tuple[str, ...]:
        """Return the ends of the names of archives that hold a file for each sample."""
        ends: tuple[str, ...] = import_module("sigma_data.pictures.archive").ARCHIVES
        return ends

    def files(self, path: Path) -> list[Path]:
        """Return the pictures in a folder or an archive, in the order of their samples."""
        listing: Any = import_module("sigma_data.pictures.folder").list_pictures(path)
        return [path / picture.path for picture in listing.pictures]

    def _load_once(self) -> Loaded:
        if self._loaded is None:
            splits, classes = self.load()
            self._loaded = weigh_splits(splits, self.class_weights, classes), classes
        return self._loaded

    def __getitem__(self, name: str) -> Dataset:
        if name not in self.names:
            raise KeyError(name)
        return self._load_once()[0][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def shares(owner: Any, attribute: Attribute[Any], value: Mapping[str, float]) -> None:
    """Raise SigmaConfigError for invalid shares, and without one for training."""
    check(value)
    if "training" not in value:
        raise SigmaConfigError(f"split: there is no 'training' among {', '.join(value)}. Give it a share.")


def read_fold(value: Any) -> Any:
    """Return the fold of a table."""
    return Folding(**value) if isinstance(value, Mapping) else value


@define(eq=False, kw_only=True)
class Divided(Splits):
    """A data set without predefined splits.

    Args:
        split: Share of the rows of each split, by its name; one of them is ``training``.
        split_by: How rows are divided: at random, in blocks of neighbours, or at random within each class (see
            ``sigma_data.split``).
        seed: Seed of the division. It is independent of the run's, so that runs with different seeds are evaluated on
            the same rows.
        fold: Which of several folds this is, such as ``{ number = 0, of = 5 }``: the rows of training and validation
            are divided into equal parts, and validation is the part of this number. By default there are no folds.
    """

    split: Mapping[str, float] = field(factory=lambda: {"training": 0.8, "validation": 0.2}, validator=shares)
    split_by: By = field(default="record", validator=in_(KINDS))
    seed: int = field(default=0, validator=[ge(0), lt(2**64)])
    fold: Folding | None = field(default=None, converter=read_fold)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return tuple(self.split) if self.fold is None else fold_names(self.split)

    @abstractmethod
    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return all rows, and the labels of the classes."""

    def groups(self) -> Sequence[Hashable] | None:
        """Return the group of each row; rows of a group stay in one split. None if there are no groups.

        Called after :meth:`all_rows`.
        """
        return None

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        rows, classes = self.all_rows()
        return split(rows, self.split, self.split_by, self.seed, groups=self.groups(), fold=self.fold), classes
