"""A subset of the rows of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from sigma_kernel import Dataset, Label, SigmaDataError
from sigma_kernel.graph import Spec


class Subset(Dataset):
    """The rows of a data set with the given numbers, counted across all its blocks.

    Its blocks are those of the data set that contain such rows; within a block, rows keep the order given.  Raises
    SigmaDataError if there are no rows, or for a row that does not exist.
    """

    def __init__(self, dataset: Dataset, rows: npt.ArrayLike) -> None:
        self.dataset, self._chosen = dataset, rows
        starts = [0, *accumulate(dataset.rows(block) for block in range(dataset.blocks))]
        chosen = _checked(np.asarray(rows), starts[-1])
        homes = np.searchsorted(starts, chosen, side="right") - 1
        self._parts = [(int(home), chosen[homes == home] - starts[home]) for home in np.flatnonzero(np.bincount(homes))]

    def __repr__(self) -> str:
        return f"Subset({self.dataset!r}, {len(self)} rows)"

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        return self.dataset.sections

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

    @property
    def numbered(self) -> bool:
        """Return whether the rows of the data set have numbers that stay the same."""
        return self.dataset.numbered

    def encode(self, section: str, classes: int | None, names: Sequence[Label] = ()) -> Subset:
        """Return the same rows of the encoded data set, whose classes are those of all its rows."""
        whole = self.dataset.encode(section, classes, names)
        return self if whole is self.dataset else Subset(whole, self._chosen)

    def aligned(self, training: Dataset) -> Subset:
        """Return the same rows with the columns of the training split."""
        whole = self.dataset.aligned(training)
        return self if whole is self.dataset else Subset(whole, self._chosen)

    @property
    def tables(self) -> Mapping[str, Any]:
        """Return what extracts the sections that were frames."""
        return getattr(self.dataset, "tables", {})

    @property
    def learned(self) -> Mapping[str, Any]:
        """Return what the data set derived from all its rows."""
        return getattr(self.dataset, "learned", {})

    def class_names(self, section: str) -> Sequence[Label]:
        """Return the class names of a section."""
        return self.dataset.class_names(section)

    def column_names(self, section: str) -> Sequence[str]:
        """Return the names of the columns of a section."""
        return self.dataset.column_names(section)


def _checked(rows: np.ndarray, count: int) -> np.ndarray:
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
        raise SigmaDataError("subset: rows must be integers, at least one of them.")
    wrong = rows[(rows < 0) | (rows >= count)]
    if len(wrong):
        raise SigmaDataError(f"subset: there is no row {wrong[0]}, only 0 to {count - 1}.")
    return rows.astype(np.int64)
