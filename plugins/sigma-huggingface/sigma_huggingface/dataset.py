"""A saved dataset of Hugging Face as a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from attrs import define, evolve, field

from sigma_data import Divided, Tabular
from sigma_data.datasets.dividing import list_parts
from sigma_huggingface.folder import holds_datasets, is_single, list_splits, open_saved, split_saved
from sigma_kernel import Dataset, Encoder, Label, SigmaConfigError
from sigma_kernel.settings import in_


@define(eq=False)
class HuggingFace(Divided):
    """A folder that ``save_to_disk`` of Hugging Face's library ``datasets`` has written.

    Columns get encoders that suit their kinds, fitted on the training rows, as those of the data set ``table``.  A
    ``ClassLabel`` has the names of its classes.  The datasets of a ``DatasetDict`` are splits, ``train`` that for
    training; a single one is divided by ``split``, and ``train`` is if there is none for validation.

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
        return tuple(list_parts(self._folders, self.split)) or super().names

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
        folders = self._folders
        table = self._table(folders.pop("training"), {"training": 1.0} if "validation" in folders else self.split)
        parts, classes = table.load()
        others = {name: self._table(folder, {"training": 1.0}).all_rows()[0] for name, folder in folders.items()}
        list_parts(self._folders, self.split)
        return {**parts, **{name: rows.align(parts["training"]) for name, rows in others.items()}}, classes

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
        place: Any = open_saved(path) if is_single(path) else path
        return Tabular(path, self.target).samples(place, shape, white, self.learned if learned is None else learned)

    def claims(self, path: Path) -> bool:
        """Return whether a path is a saved dataset, or several, and no table."""
        return holds_datasets(path)

    def _refuse_to_divide(self) -> NoReturn:
        raise SigmaConfigError(
            f"{self.folder}: has splits already: {', '.join(self._folders)}. Give the folder of one of them."
        )

    @property
    def _folders(self) -> dict[str, Path]:
        return split_saved(self.folder)

    def _table(self, folder: Path, split: Mapping[str, float] | None = None) -> Tabular:
        table = Tabular(
            open_saved(folder), self.target, columns=self.columns, exclude=self.exclude, targets=self.targets,
            missing_targets=self.missing_targets, split=split or self.split, split_by=self.split_by, seed=self.seed,
        )  # fmt: skip
        return table if split else evolve(table, fold=self.fold)
