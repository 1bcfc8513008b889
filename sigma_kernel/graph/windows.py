"""The semantics of convolution and pooling, in slices and matrix products.

Shapes: ``x (N, C, *S)``, ``w (O, C / groups, *K)``, results ``(N, O, *S')``. Position k of window o covers
``x[o * stride + k * dilation - low]``; outside of x, values are 0, or minus infinity for a maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from sigma_kernel.graph.namespace import Array, Namespace

Sides = Sequence[int]
Padding = Sequence[tuple[int, int]]


def pad(ns: Namespace, x: Array, *, low: Sides, high: Sides, interior: Sides, value: float) -> Array:
    """Return x with ``interior`` copies of a value between neighbours and ``low`` and ``high`` around them."""
    for axis, (before, after, between) in enumerate(zip(low, high, interior, strict=True)):
        x = _spread(ns, x, axis, between, value) if between else x
        parts = [_fill(ns, x, axis, before, value), x, _fill(ns, x, axis, after, value)]
        x = ns.xp.concat(parts, axis=axis) if before or after else x
    return x


def _spread(ns: Namespace, x: Array, axis: int, between: int, value: float) -> Array:
    wide = ns.xp.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    spread = ns.xp.concat([wide, _fill(ns, wide, axis + 1, between, value)], axis=axis + 1)
    side = x.shape[axis] * (1 + between)
    flat = ns.xp.reshape(spread, (*x.shape[:axis], side, *x.shape[axis + 1 :]))
    return flat[(*(slice(None),) * axis, slice(0, max(side - between, 0)), ...)]


def _fill(ns: Namespace, x: Array, axis: int, side: int, value: float) -> Array:
    return ns.full((*x.shape[:axis], side, *x.shape[axis + 1 :]), value, x)


# -- windows -----------------------------------------------------------------------------------------------------------
def _windows(
    ns: Namespace, x: Array, *, window: Sides, stride: Sides, padding: Padding, dilation: Sides = (), value: float = 0.0
) -> Array:
    """Return the entries of every window, ``(N, C, prod(window), *S')``."""
    low, high = ((0, 0, *side) for side in zip(*padding, strict=True))
    padded = pad(ns, x, low=low, high=high, interior=(0,) * len(low), value=value)
    starts = list(_starts(window, dilation))
    ends = [side - last for side, last in zip(padded.shape[2:], starts[-1], strict=True)]
    cuts = ([slice(a, a + end, s) for a, end, s in zip(start, ends, stride, strict=True)] for start in starts)
    return ns.xp.stack([padded[(slice(None), slice(None), *cut)] for cut in cuts], axis=2)


def _overlay(
    ns: Namespace, windows: Array, *, shape: Sides, window: Sides, stride: Sides, padding: Padding, dilation: Sides = ()
) -> Array:
    """Return the sum of windows, each added at its position: the transpose of :func:`_windows`."""
    sides = [n + before + after for n, (before, after) in zip(shape[2:], padding, strict=True)]
    spans = [(m - 1) * s + 1 for m, s in zip(windows.shape[3:], stride, strict=True)]
    total: Any = 0
    for number, start in enumerate(_starts(window, dilation)):
        rest = (side - a - span for side, a, span in zip(sides, start, spans, strict=True))
        room = {"low": (0, 0, *start), "high": (0, 0, *rest), "interior": (0, 0, *(s - 1 for s in stride))}
        total = pad(ns, windows[:, :, number, ...], **room, value=0.0) + total
    kept = (slice(before, before + n) for n, (before, _) in zip(shape[2:], padding, strict=True))
    return total[(slice(None), slice(None), *kept)]


def _starts(window: Sides, dilation: Sides) -> Iterator[list[int]]:
    """Yield the offset of every position of a window from its beginning."""
    for place in product(*map(range, window)):
        yield [k * d for k, d in zip(place, dilation or (1,) * len(place), strict=True)]


# -- pooling -----------------------------------------------------------------------------------------------------------
def _mask_windows(ns: Namespace, windows: Array, index: Array) -> Array:
    """Return windows in which all but the indexed entry are zero."""
    places = ns.xp.astype(ns.xp.arange(windows.shape[2]), index.dtype)
    there = index[:, :, None, ...] == ns.xp.reshape(places, (-1, *(1,) * (index.ndim - 2)))
    return ns.xp.where(there, windows, ns.xp.zeros_like(windows))


def _repeat(ns: Namespace, g: Array, window: Sides) -> Array:
    """Return windows filled with one value each."""
    return ns.xp.broadcast_to(g[:, :, None, ...], (*g.shape[:2], prod(window), *g.shape[2:]))


def _highest(ns: Namespace, x: Array, how: Any) -> Array:
    return _windows(ns, x, value=-float("inf"), **how)


def _sum(ns: Namespace, windows: Array, axis: int = 2) -> Array:
    return ns.xp.sum(windows, axis=axis, dtype=windows.dtype)


# -- convolution -------------------------------------------------------------------------------------------------------
def _convolution(ns: Namespace, x: Array, w: Array, *, groups: int, **how: Any) -> Array:
    windows = _windows(ns, x, window=w.shape[2:], **how)
    result = ns.xp.matmul(_rows(ns, w, groups), _columns(ns, windows, groups))
    return ns.xp.reshape(result, (x.shape[0], w.shape[0], *windows.shape[3:]))


def _convolution_input(ns: Namespace, g: Array, w: Array, *, shape: Sides, groups: int, **how: Any) -> Array:
    columns = ns.xp.matmul(ns.xp.matrix_transpose(_rows(ns, w, groups)), _columns(ns, g[:, :, None, ...], groups))
    windows = ns.xp.reshape(columns, (shape[0], shape[1], prod(w.shape[2:]), *g.shape[2:]))
    return _overlay(ns, windows, shape=shape, window=w.shape[2:], **how)


def _convolution_kernel(ns: Namespace, x: Array, g: Array, *, shape: Sides, groups: int, **how: Any) -> Array:
    columns = _columns(ns, _windows(ns, x, window=shape[2:], **how), groups)
    each = ns.xp.matmul(_columns(ns, g[:, :, None, ...], groups), ns.xp.matrix_transpose(columns))
    return ns.xp.reshape(_sum(ns, each, axis=0), tuple(shape))


def _rows(ns: Namespace, w: Array, groups: int) -> Array:
    return ns.xp.reshape(w, (groups, w.shape[0] // groups, prod(w.shape[1:])))


def _columns(ns: Namespace, windows: Array, groups: int) -> Array:
    samples, channels, window, *sides = windows.shape
    return ns.xp.reshape(windows, (samples, groups, channels // groups * window, prod(sides)))


MEANINGS: dict[str, Callable[..., Array]] = {
    "pad": pad,
    "convolution": _convolution,
    "convolution_input": _convolution_input,
    "convolution_kernel": _convolution_kernel,
    "max_pool": lambda ns, x, **how: ns.xp.max(_highest(ns, x, how), axis=2),
    "pool_argmax": lambda ns, x, **how: ns.cast(ns.xp.argmax(_highest(ns, x, how), axis=2), "int32"),
    "pool_select": lambda ns, x, index, **how: _sum(ns, _mask_windows(ns, _windows(ns, x, **how), index)),
    "pool_scatter": lambda ns, g, index, window, **how: _overlay(
        ns, _mask_windows(ns, _repeat(ns, g, window), index), window=window, **how
    ),
    "sum_pool": lambda ns, x, **how: _sum(ns, _windows(ns, x, **how)),
    "sum_unpool": lambda ns, g, window, **how: _overlay(ns, _repeat(ns, g, window), window=window, **how),
}
