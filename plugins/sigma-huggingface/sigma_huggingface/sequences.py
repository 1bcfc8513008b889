"""Lists of numbers in a saved dataset of Hugging Face as a data set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.dividing import divide_training, list_parts
from sigma_data.datasets.splits import Loaded
from sigma_data.subset import Subset
from sigma_huggingface.folder import is_single, open_saved, split_saved
from sigma_huggingface.nested import Sequences
from sigma_huggingface.saved_column import SavedColumn
from sigma_huggingface.targets import SavedLabels, read_labels
from sigma_kernel import Dataset, Label, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import ge, optional


@define(eq=False)
class HuggingFaceSequences(SavedColumn):
    """The lists in a column of a dataset that ``save_to_disk`` of Hugging Face's library ``datasets`` has written.

    ``inputs`` are arrays (steps, ...) of integers, int32, or of other numbers, float32; integers beyond int32
    are refused.  Lists of several lengths are
    padded with zeros at their ends, or cut off; ``lengths`` then has the number of steps that hold values, and ``mask``
    is 1 for these and 0 for padding.

    The datasets of a ``DatasetDict`` are splits, ``train`` that for training; without one for validation, ``split``
    divides ``train``.

    Args:
        column: Column of the lists.
        length: Steps to which lists are brought; by default those of the longest row, and all if they are equal.
    """

    column: str
    length: int | None = field(default=None, validator=optional(ge(1)), kw_only=True)
    _groups: tuple[Hashable, ...] | None = field(default=None, init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; only descriptions are read."""
        return tuple(list_parts(split_saved(self.folder), self.split)) or super().names

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        parts = split_saved(self.folder)
        if not parts:
            return super().load()
        if self.fold is not None:
            raise SigmaConfigError(f"{self.folder}: has splits already: {', '.join(parts)}. Give one of them.")
        whole, labels = self._read([*parts.values()])
        places = divide_training(labels.divide([*parts]), whole, self, labels.select_groups)
        if empty := [name for name, rows in places.items() if not len(rows)]:
            raise SigmaDataError(f"{self.folder}: the split {empty[0]!r} has no row with a target. Add some.")
        return {name: Subset(whole, rows) for name, rows in places.items()}, whole.class_names("targets")

    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return all rows of a single dataset; raises SigmaConfigError for several."""
        if parts := split_saved(self.folder):
            raise SigmaConfigError(f"{self.folder}: has splits already: {', '.join(parts)}. Give one of them.")
        whole, labels = self._read([self.folder])
        self._groups = labels.groups
        return whole, whole.class_names("targets")

    def groups(self) -> tuple[Hashable, ...] | None:
        """Return the group of each row, if there are groups."""
        return self._groups

    def _read(self, folders: list[Path]) -> tuple[Arrays, SavedLabels]:
        """Return the rows with a target of some saved datasets, and what is known of their targets."""
        labels = read_labels(folders, self.target_settings)
        rows = read_sequences(folders, self.column, labels.kept)
        rows.check_filled(self.column, str(self.folder))
        if self.length is None and rows.shape is not None:
            inputs, _ = rows.pad(rows.shape[0], str(self.folder))
            return Arrays(inputs=inputs, targets=labels.targets), labels
        inputs, lengths = rows.pad(self.length or max(1, int(rows.lengths.max())), str(self.folder))
        mask = (np.arange(inputs.shape[1]) < lengths[:, None]).astype(np.int32)
        return Arrays(inputs=inputs, lengths=lengths, mask=mask, targets=labels.targets), labels

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the lists of another saved dataset, brought to the length of the training; or samples of a file."""
        if not is_single(path):
            return super().samples(path, shape, white, learned)
        rows = read_sequences([path], self.column)
        inputs, _ = rows.pad(shape[0], str(path))
        if inputs.shape[1:] != tuple(shape):
            raise SigmaDataError(f"{path}: lists have shape {inputs.shape[1:]}; the network takes {tuple(shape)}.")
        return inputs

    def files(self, path: Path) -> list[Path]:
        """Return no files: the rows of a dataset are in one."""
        return []


def read_sequences(folders: list[Path], column: str, kept: np.ndarray | None = None) -> Sequences:
    """Return the lists in a column of saved datasets, of all rows or of some; raises SigmaDataError for others."""
    tables = [open_saved(folder) for folder in folders]
    parts = [table.read([column])[column] for table in tables]
    starts = np.cumsum([0, *map(len, parts)])
    if len({*(part.type for part in parts)}) > 1:
        raise SigmaDataError(f"{folders[0]}: column {column!r} has another type in another split. Save them alike.")

    def place(row: int) -> str:
        at = row if kept is None else int(kept[row])
        part = int(np.searchsorted(starts, at, side="right")) - 1
        return tables[part].place(at - int(starts[part]))

    whole = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    if not len(whole):
        raise SigmaDataError(f"{folders[0]}: has no row. Check the folder.")
    return Sequences.from_column(whole if kept is None else whole.take(kept), column, place)
