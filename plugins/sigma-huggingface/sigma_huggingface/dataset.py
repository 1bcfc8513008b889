"""A saved dataset of Hugging Face as a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from attrs import define, evolve, field

from sigma_data import Divided, Tabular
from sigma_huggingface.folder import is_saved, list_splits, open_saved
from sigma_kernel import Dataset, Encoder, Label, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import in_

NAMES = {"train": "training", "valid": "validation", "val": "validation", "dev": "validation"}


@define(eq=False)
class HuggingFace(Divided):
    """A folder that ``save_to_disk`` of Hugging Face's library ``datasets`` has written.

    Columns get encoders that suit their kinds, fitted on the training rows, as those of the data set ``table``.  A
    ``ClassLabel`` has the names of its classes.  The datasets of a ``DatasetDict`` are splits, ``train`` that for
    training; a single one is divided by ``split``.

    Args:
        folder: Folder of the dataset; in a configuration, a relative one starts in the directory of the configuration.
        target: Column to predict; or several, which hold numbers.
        columns: Encoder by column, or ``"exclude"``; other columns get one that suits their kind.
        exclude: Columns to leave out.
        targets: What the target holds: classes, numbers, or what the cost takes.
        missing_targets: What rows without a target, or of the class -1, do: raise an error, or are dropped.
    """

    folder: Path = field(converter=Path)
    target: str | tuple[str, ...]
    columns: Mapping[str, Encoder | Literal["exclude"]] = field(factory=dict, kw_only=True)
    exclude: str | tuple[str, ...] = field(default=(), kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    missing_targets: Literal["refuse", "drop"] = field(
        default="refuse", validator=in_(("refuse", "drop")), kw_only=True
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; only descriptions are read."""
        return (*self._folders,) if list_splits(self.folder) else super().names

    @property
    def learned(self) -> dict[str, Any]:
        """Return the columns with what their encoders learned, to predict with."""
        return getattr(self._load_once()[0]["training"], "learned", {})

    def load(self) -> tuple[Mapping[str, Dataset], tuple[Label, ...]]:
        """Return the splits, and the labels of the classes."""
        if not list_splits(self.folder):
            return self._table(self.folder).load()
        if self.fold is not None:
            self._refuse_to_divide()
        tables = {name: self._table(folder, split={"training": 1.0}) for name, folder in self._folders.items()}
        training, classes = tables["training"].all_rows()
        others = {name: table for name, table in tables.items() if name != "training"}
        return {"training": training, **{name: x.all_rows()[0].align(training) for name, x in others.items()}}, classes

    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return all rows of a single dataset; raises SigmaConfigError for several."""
        if list_splits(self.folder):
            self._refuse_to_divide()
        return self._table(self.folder).all_rows()

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the inputs of another saved dataset with the same columns, or of a table of any format."""
        place: Any = open_saved(path) if is_saved(path) else path
        return Tabular(path, self.target).samples(place, shape, white, self.learned if learned is None else learned)

    def claims(self, path: Path) -> bool:
        """Return whether a path is a saved dataset, and no table."""
        return is_saved(path)

    def _refuse_to_divide(self) -> NoReturn:
        raise SigmaConfigError(
            f"{self.folder}: has splits already: {', '.join(self._folders)}. Give the folder of one of them."
        )

    @property
    def _folders(self) -> dict[str, Path]:
        """Return the folder of each split, that for training first."""
        names = {NAMES.get(name, name): self.folder / name for name in list_splits(self.folder)}
        if len(names) < len(list_splits(self.folder)):
            twice = Counter(NAMES.get(name, name) for name in list_splits(self.folder)).most_common(1)[0][0]
            raise SigmaDataError(f"{self.folder}: several splits are {twice!r}. Rename all but one.")
        if "training" not in names:
            raise SigmaDataError(f"{self.folder}: has no split 'train', only {', '.join(names)}. Rename one.")
        return {"training": names["training"], **names}

    def _table(self, folder: Path, split: Mapping[str, float] | None = None) -> Tabular:
        table = Tabular(
            open_saved(folder), self.target, columns=self.columns, exclude=self.exclude, targets=self.targets,
            missing_targets=self.missing_targets, split=split or self.split, split_by=self.split_by, seed=self.seed,
        )  # fmt: skip
        return table if split else evolve(table, fold=self.fold)
