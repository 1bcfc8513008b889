"""What convolution and pooling mean: sums, maxima and products over windows, by slices and matrix products alone.

Shapes: ``x (N, C, *S)``, ``w (O, C / groups, *K)``, results ``(N, O, *S')``.  The place k of window number o covers
``x[o * stride + k * dilation - low]``; what lies outside of x counts as 0, and as minus infinity for a maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        parts = [_filled(ns, x, axis, before, value), x, _filled(ns, x, axis, after, value)]
        x = ns.xp.concat(parts, axis=axis) if before or after else x
    return x


def convolution(
    ns: Namespace, x: Array, w: Array, *, stride: Sides, padding: Padding, dilation: Sides, groups: int
) -> Array:
    """Return the cross-correlation of x and w."""
    windows = _windows(ns, x, w.shape[2:], stride, padding, dilation)
    result = ns.xp.matmul(_rows(ns, w, groups), _columns(ns, windows, groups))
    return ns.xp.reshape(result, (x.shape[0], w.shape[0], *windows.shape[3:]))


def convolution_input(
    ns: Namespace, g: Array, w: Array, *, shape: Sides, stride: Sides, padding: Padding, dilation: Sides, groups: int
) -> Array:
    """Return the gradient with respect to x, of the given shape."""
    rows = ns.xp.matrix_transpose(_rows(ns, w, groups))
    columns = ns.xp.matmul(rows, _grouped(ns, g, groups))
    windows = ns.xp.reshape(columns, (shape[0], shape[1], prod(w.shape[2:]), *g.shape[2:]))
    return _overlay(ns, windows, shape, w.shape[2:], stride, padding, dilation)


def convolution_kernel(
    ns: Namespace, x: Array, g: Array, *, shape: Sides, stride: Sides, padding: Padding, dilation: Sides, groups: int
) -> Array:
    """Return the gradient with respect to w, of the given shape."""
    windows = _windows(ns, x, shape[2:], stride, padding, dilation)
    each = ns.xp.matmul(_grouped(ns, g, groups), ns.xp.matrix_transpose(_columns(ns, windows, groups)))
    return ns.xp.reshape(ns.xp.sum(each, axis=0, dtype=each.dtype), tuple(shape))


def max_pool(ns: Namespace, x: Array, *, window: Sides, stride: Sides, padding: Padding) -> Array:
    """Return the largest value of each window."""
    return ns.xp.max(_windows(ns, x, window, stride, padding, value=ns.lowest(x)), axis=2)


def pool_argmax(ns: Namespace, x: Array, *, window: Sides, stride: Sides, padding: Padding) -> Array:
    """Return the flat place inside each window of its largest value, the first one on ties."""
    windows = _windows(ns, x, window, stride, padding, value=ns.lowest(x))
    return ns.cast(ns.xp.argmax(windows, axis=2), "int32")


def pool_select(ns: Namespace, x: Array, index: Array, *, window: Sides, stride: Sides, padding: Padding) -> Array:
    """Return the value at the given place of each window."""
    windows = _windows(ns, x, window, stride, padding)
    return ns.xp.sum(ns.xp.where(_chosen(ns, index, window), windows, ns.xp.zeros_like(windows)), axis=2, dtype=x.dtype)


def pool_scatter(
    ns: Namespace, g: Array, index: Array, *, shape: Sides, window: Sides, stride: Sides, padding: Padding
) -> Array:
    """Return an array of the given shape with g added at the places that index names."""
    spread = ns.xp.broadcast_to(g[:, :, None, ...], (*g.shape[:2], prod(window), *g.shape[2:]))
    windows = ns.xp.where(_chosen(ns, index, window), spread, ns.xp.zeros_like(spread))
    return _overlay(ns, windows, shape, window, stride, padding)


def sum_pool(ns: Namespace, x: Array, *, window: Sides, stride: Sides, padding: Padding) -> Array:
    """Return the sum of each window."""
    return ns.xp.sum(_windows(ns, x, window, stride, padding), axis=2, dtype=x.dtype)


def sum_unpool(ns: Namespace, g: Array, *, shape: Sides, window: Sides, stride: Sides, padding: Padding) -> Array:
    """Return an array of the given shape with g added all over its windows."""
    windows = ns.xp.broadcast_to(g[:, :, None, ...], (*g.shape[:2], prod(window), *g.shape[2:]))
    return _overlay(ns, windows, shape, window, stride, padding)


def _windows(
    ns: Namespace, x: Array, window: Sides, stride: Sides, padding: Padding, dilation: Sides = (), value: float = 0.0
) -> Array:
    """Return what the windows cover, ``(N, C, prod(window), *S')``."""
    dilation = dilation or (1,) * len(window)
    low, high = ((0, 0, *side) for side in zip(*padding, strict=True))
    padded = pad(ns, x, low=low, high=high, interior=(0,) * len(low), value=value)
    last = [n - (k - 1) * d for n, k, d in zip(padded.shape[2:], window, dilation, strict=True)]
    parts = []
    for place in product(*map(range, window)):
        starts = [k * d for k, d in zip(place, dilation, strict=True)]
        inside = (slice(start, start + end, step) for start, end, step in zip(starts, last, stride, strict=True))
        parts.append(padded[(slice(None), slice(None), *inside)])
    return ns.xp.stack(parts, axis=2)


def _overlay(
    ns: Namespace, windows: Array, shape: Sides, window: Sides, stride: Sides, padding: Padding, dilation: Sides = ()
) -> Array:
    """Return the sum of windows laid where they came from: the transpose of :func:`_windows`."""
    dilation = dilation or (1,) * len(window)
    total: Any = 0
    for number, place in enumerate(product(*map(range, window))):
        low = [k * d for k, d in zip(place, dilation, strict=True)]
        high = [
            n + before + after - first - s * (m - 1) - 1
            for n, (before, after), first, s, m in zip(shape[2:], padding, low, stride, windows.shape[3:], strict=True)
        ]
        between = [s - 1 for s in stride]
        part = windows[:, :, number, ...]
        total = pad(ns, part, low=(0, 0, *low), high=(0, 0, *high), interior=(0, 0, *between), value=0.0) + total
    kept = (slice(before, before + n) for n, (before, _) in zip(shape[2:], padding, strict=True))
    return total[(slice(None), slice(None), *kept)]


def _rows(ns: Namespace, w: Array, groups: int) -> Array:
    return ns.xp.reshape(w, (groups, w.shape[0] // groups, prod(w.shape[1:])))


def _grouped(ns: Namespace, g: Array, groups: int) -> Array:
    return ns.xp.reshape(g, (g.shape[0], groups, g.shape[1] // groups, prod(g.shape[2:])))


def _columns(ns: Namespace, windows: Array, groups: int) -> Array:
    samples, channels, window, *sides = windows.shape
    return ns.xp.reshape(windows, (samples, groups, channels // groups * window, prod(sides)))


def _chosen(ns: Namespace, index: Array, window: Sides) -> Array:
    places = ns.xp.astype(ns.xp.arange(prod(window)), index.dtype)
    return index[:, :, None, ...] == ns.xp.reshape(places, (-1, *(1,) * (index.ndim - 2)))


def _spread(ns: Namespace, x: Array, axis: int, between: int, value: float) -> Array:
    """Put copies of a value between neighbours along an axis."""
    wide = ns.xp.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    spread = ns.xp.concat([wide, _filled(ns, wide, axis + 1, between, value)], axis=axis + 1)
    side = x.shape[axis] * (1 + between)
    flat = ns.xp.reshape(spread, (*x.shape[:axis], side, *x.shape[axis + 1 :]))
    return flat[(*(slice(None),) * axis, slice(0, max(side - between, 0)), ...)]


def _filled(ns: Namespace, x: Array, axis: int, side: int, value: float) -> Array:
    return ns.full((*x.shape[:axis], side, *x.shape[axis + 1 :]), value, x)
