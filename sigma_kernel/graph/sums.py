"""Sums of NumPy's arrays, whose errors do not grow with the number of rows.

NumPy adds in pairs along the axis whose elements are closest in memory, and sequentially along all others. The sums of
many rows are therefore cut into parts, whose sums are then added, as NumPy does for neighbours: N. J. Higham, The
accuracy of floating point summation, SIAM J. Sci. Comput. 14 (1993) 783-799.
"""

from __future__ import annotations

from math import prod

import numpy as np

TERMS = 1 << 10  # numbers that may be added one after another
PART = 1 << 7  # rows to add sequentially; more are cut into parts
WIDTH = 1 << 12  # numbers that are added side by side: they stay in the first cache


def sum_axes(x: np.ndarray, axis: tuple[int, ...], out: np.ndarray | None = None) -> np.ndarray:
    """Return the sum over axes, which stay with side 1; of floats, at most TERMS are added one after another."""
    if x.dtype.kind != "f" or _count_sequential(x, axis) <= TERMS:
        total: np.ndarray = np.add.reduce(x, axis, x.dtype, out, keepdims=True)
        return total
    farthest = max(axis, key=lambda k: (x.shape[k] > 1, abs(x.strides[k])))
    return sum_axes(_sum_axis(x, farthest), tuple(k for k in axis if k != farthest), out)


def _count_sequential(x: np.ndarray, axis: tuple[int, ...]) -> int:
    """Return how many numbers NumPy adds one after another: all, but those along the axes that are one in memory."""
    terms: int = prod(x.shape[k] for k in axis)
    order = sorted(range(x.ndim), key=lambda k: abs(x.strides[k]))
    run, step = 1, 0
    for k in (k for k in order if x.shape[k] > 1):
        if k not in axis or not x.strides[k] or abs(x.strides[k]) != (step or abs(x.strides[k])):
            break
        run, step = run * x.shape[k], abs(x.strides[k]) * x.shape[k]
    return terms // run


def _sum_axis(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the sum over one axis: adjacent rows are added to others, part by part."""
    rows, step = x.shape[axis], abs(x.strides[axis])
    if rows <= PART:
        return np.add.reduce(x, axis, x.dtype, keepdims=True)
    row = prod(side for side, stride in zip(x.shape, x.strides, strict=True) if abs(stride) < step)
    beside = max(1, min(WIDTH // max(row, 1), rows // PART))
    parts, before, after = rows // (PART * beside), x.shape[:axis], x.shape[axis + 1 :]
    first, rest = np.split(x, [parts * PART * beside], axis)
    sums = np.add.reduce(first.reshape(*before, parts, PART, beside, *after), axis + 1, x.dtype)
    total = _sum_axis(sums.reshape(*before, parts * beside, *after), axis)
    return total + _sum_axis(rest, axis) if rest.shape[axis] else total
