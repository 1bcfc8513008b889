"""Helpers of pools: windows over samples, gathered windows, and checks of a sample's shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.windows import Padding, Sides, reach, values_per_side, window

Places = Sequence[np.ndarray]  # for each side, the entries in its windows ``(windows, length)``; beyond it is padding


def window_settings(
    where: str, shape: tuple[int, ...], size: Sides, stride: Sides | None, around: Padding, dilation: Sides = 1,
    ceil_mode: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return window, stride, padding and dilation for a sample.

    Raises SigmaNetworkError if windows do not fit, or could hold padding only.
    """
    check(where, shape)
    how = window(where, shape, size, size if stride is None else stride, around, dilation, ceil_mode)
    if not all(map(_is_covered, shape[1:], *how.values())):
        raise SigmaNetworkError(
            f"{where}({shape}): windows of {how['window']} with padding {around!r} could hold padding only. "
            "Use less padding."
        )
    return how


def check(where: str, shape: tuple[int, ...]) -> None:
    """Raise SigmaNetworkError unless a sample has channels and sides."""
    if len(shape) < 2:
        remedy = f"Put Reshape(1, {shape[0]}) before it." if shape else "Leave it out."
        raise SigmaNetworkError(f"{where}({shape}): a sample must have channels and sides to pool. {remedy}")


# -- windows as entries ------------------------------------------------------------------------------------------------
def places(n: int, span: int, step: int, pair: tuple[int, int], gap: int = 1) -> np.ndarray:
    """Return the entries of a side in each window ``(windows, span)``; those in the padding are n."""
    starts = np.arange(0, n + sum(pair) - (span - 1) * gap, step)
    entries = starts[:, None] + np.arange(span) * gap - pair[0]
    return np.where((entries < 0) | (entries >= n), n, entries)


def _is_covered(n: int, span: int, step: int, pair: tuple[int, int], gap: int) -> bool:
    return max(pair) < reach(span, gap) and bool((places(n, span, step, pair, gap) < n).any(axis=1).all())


def window_entries(n: int, parts: int) -> np.ndarray:
    """Return the entries of a side in each of so many windows, which cover it evenly; a shorter one ends in n.

    Window i of m begins at ``floor(i * n / m)`` and ends before ``ceil((i + 1) * n / m)``.
    """
    starts = np.arange(parts) * n // parts
    ends = -(-np.arange(1, parts + 1) * n // parts)
    entries = starts[:, None] + np.arange((ends - starts).max())
    return np.where(entries < ends[:, None], entries, n)


def unfold_windows(x: Node, sides: Places, fill: float) -> Node:
    """Return the entries of windows side by side, padding being ``fill``; a pool then has a stride of its size."""
    outside = tuple(int((at == n).any()) for at, n in zip(sides, x.shape[2:], strict=True))
    if any(outside):
        x = f.pad(x, (0,) * len(x.shape), (0, 0, *outside), value=fill)
    for axis, at in enumerate(sides, 2):
        x = f.take(x, at.reshape(-1).astype(np.int32), axis)
    return x


def window_counts(shape: Sequence[int], sides: Places) -> np.ndarray:
    """Return the number of entries in each window that are not padding, ``(1, 1, *windows)``."""
    total = np.ones((1,) * len(shape))
    for axis, (n, at) in enumerate(zip(shape[2:], sides, strict=True), 2):
        total = total * (at < n).sum(axis=1).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return total


# -- adaptive pools ----------------------------------------------------------------------------------------------------
def adaptive_sides(where: str, shape: tuple[int, ...], size: Sides) -> tuple[int, ...]:
    """Return the sides of the result for a sample; raises SigmaNetworkError if it has others."""
    check(where, shape)
    return values_per_side(where, shape, "size", size)


def even_windows(shape: Iterable[int], size: Iterable[int]) -> tuple[int, ...] | None:
    """Return the windows that divide the sides into equal parts, or None if none do."""
    pairs = [*zip(shape, size, strict=True)]
    return tuple(n // m for n, m in pairs) if all(n % m == 0 for n, m in pairs) else None
