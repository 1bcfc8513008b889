"""Curves as rows of small bars, drawn from values that are read on from a cursor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Stretch, View

BARS, ASCII = "▁▂▃▄▅▆▇█", "_.,-=+*#"
MOST = 512  # points of a curve; neighbours are joined beyond that


@define(eq=False)
class Trend:
    """The values at an address that led to the present state, thinned."""

    address: str
    cursor: int = 0
    iterations: np.ndarray = field(factory=lambda: np.zeros(0))
    values: np.ndarray = field(factory=lambda: np.zeros(0))

    def read(self, view: View) -> None:
        """Read new values; drop those on an abandoned branch."""
        self.cursor, stretches = view.stretches(self.address, self.cursor, MOST)
        for stretch in stretches:
            self._add(stretch)
        if len(self.values) > MOST:
            parts = self._parts(MOST // 2)
            self.iterations, self.values = _means(parts, self.iterations), _means(parts, self.values)

    def _add(self, stretch: Stretch) -> None:
        kept = self.iterations < stretch.curve.iterations[0]
        self.iterations = np.concatenate([self.iterations[kept], stretch.curve.iterations])
        self.values = np.concatenate([self.values[kept], stretch.curve.values])

    def bars(self, width: int) -> list[float | None]:
        """Return the means over ``width`` equal parts of the iterations, None for a part without finite values.

        A part without values repeats the previous one.
        """
        if not len(self.values) or width < 1:
            return []
        parts = self._parts(width)
        present = np.unique(parts)
        means = dict(zip(present.tolist(), _means(parts, self.values).tolist(), strict=True))
        bars: list[float | None] = []
        for part in range(width):
            mean = means.get(part, bars[-1] if bars else None)
            bars.append(mean if mean is not None and np.isfinite(mean) else None)
        return bars

    def _parts(self, count: int) -> np.ndarray:
        """Return to which of ``count`` equal parts of the iterations each value belongs."""
        start, end = self.iterations[0], self.iterations[-1]
        parts = (self.iterations - start) * count // max(1, end - start + 1)
        return np.asarray(np.minimum(parts, count - 1), np.int64)


def _means(parts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the mean of the finite values of each part that is there; NaN for a part without any."""
    finite, size = np.isfinite(values), int(parts[-1]) + 1
    counts = np.bincount(parts[finite], minlength=size)
    sums = np.bincount(parts[finite], values[finite], minlength=size)
    means = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return np.asarray(means[np.unique(parts)])


def draw_bars(bars: Sequence[float | None], ascii_only: bool = False) -> str:
    """Return bars between the least and the greatest of them; a blank for None, the middle for a constant."""
    signs = ASCII if ascii_only else BARS
    values = [bar for bar in bars if bar is not None and np.isfinite(bar)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = high / 2 - low / 2  # which does not overflow
    return "".join(
        " " if bar is None or not np.isfinite(bar)
        else signs[min(7, int((bar / 2 - low / 2) / span * 8))] if span > 0 else signs[3]
        for bar in bars
    )  # fmt: skip
