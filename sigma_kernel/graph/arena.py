"""Memory planning: offsets of values in one block of memory, first fit by lifetime."""

from __future__ import annotations

import numpy as np
from attrs import define, field


@define(eq=False)
class Arena:
    """One block of memory, of ``size`` bytes, for values that are not alive at the same time.

    A backend chooses the order in which it places values, how many bytes each takes (multiples of its alignment), and
    the steps of its schedule during which each is alive.
    """

    size: int = field(default=0, init=False)
    _placed: np.ndarray = field(init=False)  # start, end, first and last step of each value, sorted by start

    @_placed.default
    def _(self) -> np.ndarray:
        return np.empty((4, 0), np.int64)

    def place(self, size: int, first: int, last: int) -> int:
        """Return the lowest offset at which this many bytes are free from one step to another, both inclusive."""
        starts, ends, firsts, lasts = self._placed
        meanwhile = (firsts <= last) & (first <= lasts)
        gaps = np.maximum.accumulate([0, *ends[meanwhile]])
        fits = np.flatnonzero(gaps[:-1] + size <= starts[meanwhile])
        start = int(gaps[fits[0] if len(fits) else -1])
        row = np.array([[start], [start + size], [first], [last]])
        at = int(np.searchsorted(starts, start))
        self._placed = np.concatenate([self._placed[:, :at], row, self._placed[:, at:]], axis=1)
        self.size = max(self.size, start + size)
        return start
