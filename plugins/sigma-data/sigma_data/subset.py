"""A subset of the rows of a data set."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sigma_data.arrays import Arrays, classes_lacking
from sigma_data.derived import Derived
from sigma_kernel import Dataset, SigmaDataError


class Subset(Derived):
    """The rows of a data set with the given numbers, counted across all its blocks.

    Its blocks are those of the data set that contain such rows; within a block, rows keep the order given.  Raises
    SigmaDataError if there are no rows, or for a row that does not exist.  ``groups`` has the group of each row of the
    data set; splits of the subset keep groups together.
    """

    def __init__(self, dataset: Dataset, rows: npt.ArrayLike, groups: Sequence[Hashable] | None = None) -> None:
        super().__init__(dataset)
        self._groups = groups
        starts = self.starts
        self._chosen = chosen = _check_rows(np.asarray(rows), starts[-1])
        self._parts = [(0, chosen)]
        if dataset.blocks > 1:
            homes = np.searchsorted(starts, chosen, side="right") - 1
            each = np.flatnonzero(np.bincount(homes)).tolist()
            self._parts = [(home, chosen[homes == home] - starts[home]) for home in each]

    def __repr__(self) -> str:
        return f"Subset({self.dataset!r}, {len(self)} rows)"

    def with_dataset(self, dataset: Dataset) -> Subset:
        """Return the same rows of another data set."""
        return Subset(dataset, self._chosen, self._groups)

    def groups(self) -> Sequence[Hashable] | None:
        """Return the group of each row in the order of the blocks, if there are groups."""
        groups, starts = self._groups, self.starts
        if groups is None:
            return None
        return [groups[starts[home] + row] for home, rows in self._parts for row in rows.tolist()]

    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> Sequence[str]:
        """Return what is odd about the columns of the data set, and about classes that a part of it lacks."""
        return *super().findings(classes, {}), *classes_lacking({"training": self, **others}, classes)

    def column(self, section: str) -> np.ndarray | None:
        """Return the rows of a section; None if there is no such section, or if the data set has several blocks."""
        values: np.ndarray | None = None
        if isinstance(self.dataset, Arrays | Subset):
            values = self.dataset.column(section)
        elif self.dataset.blocks == 1:
            values = self.dataset.block(0).get(section)
        return None if values is None else values[self.rows_of_dataset]

    @property
    def rows_of_dataset(self) -> np.ndarray:
        """Return the numbers of the rows in the data set, in the order of the blocks."""
        if self.dataset.blocks == 1:
            return self._chosen
        return np.concatenate([rows + self.starts[home] for home, rows in self._parts])

    @property
    def blocks(self) -> int:
        """Return the number of blocks that contain rows of the subset."""
        return len(self._parts)

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        return len(self._parts[block][1])

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the rows of a block: views if they are consecutive, else copies."""
        home, rows = self._parts[block]
        neighbours = len(rows) == rows[-1] - rows[0] + 1 and bool((np.diff(rows) == 1).all())
        where = slice(rows[0], rows[-1] + 1) if neighbours else rows
        return {name: values[where] for name, values in self.dataset.block(home).items()}


class NotedRows(Subset):
    """The rows of a data set with the given numbers, and notes on what it leaves out."""

    def __init__(self, dataset: Dataset, rows: npt.ArrayLike, notes: Sequence[str]) -> None:
        super().__init__(dataset, rows)
        self._notes = notes

    def with_dataset(self, dataset: Dataset) -> NotedRows:
        """Return the same rows of another data set."""
        return NotedRows(dataset, self._chosen, self._notes)

    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> Sequence[str]:
        """Return the notes, and what is odd about the rows."""
        return *self._notes, *super().findings(classes, others)


def _check_rows(rows: np.ndarray, count: int) -> np.ndarray:
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
        raise SigmaDataError("subset: rows must be integers, at least one of them.")
    if rows.min() < 0 or rows.max() >= count:
        wrong = rows[(rows < 0) | (rows >= count)]
        raise SigmaDataError(f"subset: there is no row {wrong[0]}, only 0 to {count - 1}.")
    return rows.astype(np.int64, copy=False)
