"""The arena: one block of memory for all intermediate values, placed first fit by lifetime."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import define, field

from sigma_kernel.graph import ALIGNMENT, BYTES, Node


def bytes_of(node: Node) -> int:
    """Return the bytes that a value takes, in whole cache lines, plus one line that separates neighbours."""
    size = prod(node.shape) * BYTES.get(node.dtype, 0)
    return -(-(size + ALIGNMENT) // ALIGNMENT) * ALIGNMENT


@define(eq=False)
class Arena:
    """Memory shared by values that are not alive at the same time; ``count`` is the number of values to place."""

    count: int
    size: int = field(default=0, init=False)
    _placed: np.ndarray = field(init=False)  # start, end, first and last stage of each value, sorted by start
    _number: int = field(default=0, init=False)

    @_placed.default
    def _(self) -> np.ndarray:
        return np.empty((4, self.count), np.int64)

    def place(self, size: int, first: int, last: int) -> int:
        """Return the offset of the first gap of this many bytes that is free from one stage to another."""
        placed = self._placed[:, : self._number]
        begins, ends = placed[:2, (placed[2] <= last) & (first <= placed[3])]
        ends = np.maximum.accumulate([0, *ends])
        fits = np.flatnonzero(ends[:-1] + size <= begins)
        start = int(ends[fits[0] if len(fits) else -1])
        at = int(np.searchsorted(placed[0], start))
        self._placed[:, at + 1 : self._number + 1] = self._placed[:, at : self._number].copy()
        self._placed[:, at] = start, start + size, first, last
        self._number, self.size = self._number + 1, max(self.size, start + size)
        return start
