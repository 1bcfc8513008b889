"""Shape rules: pure functions from the operands' shapes and the attributes to the shape of the result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import Shape

Padding = tuple[tuple[int, int], ...]


# -- elementwise -------------------------------------------------------------------------------------------------------
def same(x: Shape) -> Shape:
    """Keep the shape."""
    return x


def cast(x: Shape, *, dtype: str) -> Shape:
    """Keep the shape."""
    return x


def binary(x: Shape, y: Shape) -> Shape:
    """Broadcast two operands."""
    return broadcast(x, y)


def ternary(x: Shape, y: Shape, z: Shape) -> Shape:
    """Broadcast three operands."""
    return broadcast(x, y, z)


def broadcast(*shapes: Shape) -> Shape:
    """Align shapes at the right; a side of one stretches."""
    rank = max(map(len, shapes), default=0)
    sides = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return tuple(map(_common, sides))


def _common(sides: Sequence[int]) -> int:
    wide = {side for side in sides if side != 1}
    if len(wide) > 1:
        words = " and ".join(map(str, sides))
        raise SigmaGraphError(f"sides {words} do not broadcast. They must be equal, or one of them 1.")
    return wide.pop() if wide else 1


# -- reductions --------------------------------------------------------------------------------------------------------
def reduced(x: Shape, *, axis: tuple[int, ...]) -> Shape:
    """Keep every side, with the reduced ones set to one."""
    for a in axis:
        _check_axis(a, x)
    return tuple(1 if i in axis else side for i, side in enumerate(x))


def chosen(x: Shape, *, axis: tuple[int, ...]) -> Shape:
    """Reduce to one entry of many, of which there must be some."""
    if any(x[a] == 0 for a in axis if a < len(x)):
        raise SigmaGraphError("an empty side has no largest entry")
    return reduced(x, axis=axis)


def located(x: Shape, *, axis: int) -> Shape:
    """Reduce one axis to a place on it."""
    return chosen(x, axis=(axis,))


def _check_axis(axis: int, x: Shape, extra: int = 0) -> None:
    if not 0 <= axis < len(x) + extra:
        raise SigmaGraphError(f"there is no axis {axis}: the rank is {len(x)}")


# -- form --------------------------------------------------------------------------------------------------------------
def reshaped(x: Shape, *, shape: Shape) -> Shape:
    """Take the wanted shape if it holds as many elements."""
    if prod(x) != prod(shape):
        raise SigmaGraphError(f"{prod(x)} elements do not fill shape {shape}, which holds {prod(shape)}")
    return shape


def permuted(x: Shape, *, axes: tuple[int, ...]) -> Shape:
    """Reorder the sides."""
    if sorted(axes) != list(range(len(x))):
        raise SigmaGraphError(f"axes {axes} must name each of 0 ... {len(x) - 1} once")
    return tuple(x[a] for a in axes)


def stretched(x: Shape, *, shape: Shape) -> Shape:
    """Take the wanted shape if the operand broadcasts to it."""
    if broadcast(x, shape) != shape:
        raise SigmaGraphError(f"it does not broadcast to {shape}")
    return shape


def sliced(x: Shape, *, start: tuple[int, ...], stop: tuple[int, ...], step: tuple[int, ...]) -> Shape:
    """Count the entries between start and stop."""
    _check_entries(x, start=start, stop=stop, step=step)
    for side, a, b, by in zip(x, start, stop, step, strict=True):
        if not 0 <= a <= b <= side or by < 1:
            raise SigmaGraphError(f"{a}:{b}:{by} is no slice of a side of {side}")
    return tuple(-(-(b - a) // by) for a, b, by in zip(start, stop, step, strict=True))


def padded(x: Shape, *, low: Shape, high: Shape, interior: Shape, value: float) -> Shape:
    """Add entries before, after and between the operand's."""
    _check_entries(x, low=low, high=high, interior=interior)
    if min((*low, *high, *interior), default=0) < 0:
        raise SigmaGraphError("padding cannot be negative. Use slice to remove entries.")
    return tuple(a + spread(side, i + 1) + b for side, a, b, i in zip(x, low, high, interior, strict=True))


def spread(count: int, step: int) -> int:
    """Return how long a side is when its entries lie ``step`` apart."""
    return (count - 1) * step + 1 if count else 0


def joined(*shapes: Shape, axis: int) -> Shape:
    """Add up the sides along an axis."""
    if not shapes:
        raise SigmaGraphError("there is nothing to join")
    first = shapes[0]
    _check_axis(axis, first)
    if any((*s[:axis], *s[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) or len(s) != len(first) for s in shapes):
        raise SigmaGraphError(f"the sides must be equal, except along axis {axis}")
    return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


def counted(*, shape: Shape, axis: int, dtype: str) -> Shape:
    """Take the wanted shape."""
    _check_axis(axis, shape)
    return shape


def _check_entries(x: Shape, **entries: Sequence[Any]) -> None:
    for name, values in entries.items():
        if len(values) != len(x):
            raise SigmaGraphError(f"{name} {tuple(values)} must have {len(x)} entries, one for each side of {x}")


# -- gathering ---------------------------------------------------------------------------------------------------------
def taken(x: Shape, indices: Shape, *, axis: int) -> Shape:
    """Put the shape of the indices in the place of an axis."""
    _check_axis(axis, x)
    return (*x[:axis], *indices, *x[axis + 1 :])


def scattered(x: Shape, indices: Shape, updates: Shape, *, axis: int) -> Shape:
    """Keep the shape; the updates have the one that take would give."""
    if updates != taken(x, indices, axis=axis):
        raise SigmaGraphError(f"the updates must have shape {taken(x, indices, axis=axis)}")
    return x


# -- products ----------------------------------------------------------------------------------------------------------
def product(x: Shape, y: Shape) -> Shape:
    """Multiply the last two sides; leading ones broadcast."""
    if min(len(x), len(y)) < 2:
        raise SigmaGraphError("both operands need two sides or more. Reshape the vector.")
    if x[-1] != y[-2]:
        raise SigmaGraphError(f"inner sides differ: {x[-1]} and {y[-2]}")
    return (*broadcast(x[:-2], y[:-2]), x[-2], y[-1])


def convolved(x: Shape, w: Shape, *, stride: Shape, padding: Padding, dilation: Shape, groups: int) -> Shape:
    """Slide kernels ``(O, C / groups, *K)`` over samples ``(N, C, *S)``."""
    if len(x) != len(w) or len(x) < 3:
        raise SigmaGraphError("samples (N, C, *sides) and kernels (O, C / groups, *sides) need as many sides each")
    _check_entries(x[2:], stride=stride, padding=padding, dilation=dilation)
    if groups < 1 or x[1] % groups or w[0] % groups or x[1] // groups != w[1]:
        raise SigmaGraphError(
            f"{x[1]} channels in {groups} group(s) do not fit {w[0]} kernels over {w[1]} channels each"
        )
    spans = tuple(spread(k, d) for k, d in zip(w[2:], dilation, strict=True))
    return (x[0], w[0], *_positions(x[2:], spans, stride, padding))


def convolved_input(
    g: Shape, w: Shape, *, shape: Shape, stride: Shape, padding: Padding, dilation: Shape, groups: int
) -> Shape:
    """Take the samples' shape if sliding over it gives the operand's."""
    return _inverse(shape, g, convolved(shape, w, stride=stride, padding=padding, dilation=dilation, groups=groups))


def convolved_kernel(
    x: Shape, g: Shape, *, shape: Shape, stride: Shape, padding: Padding, dilation: Shape, groups: int
) -> Shape:
    """Take the kernels' shape if sliding them gives the operand's."""
    return _inverse(shape, g, convolved(x, shape, stride=stride, padding=padding, dilation=dilation, groups=groups))


def _inverse(shape: Shape, g: Shape, forward: Shape) -> Shape:
    if g != forward:
        raise SigmaGraphError(f"it belongs to a result of {forward}, not of {g}")
    return shape


def _positions(sides: Shape, spans: Shape, stride: Shape, padding: Padding) -> Shape:
    """Return how many places a window has along each side."""
    result = []
    for side, span, step, (low, high) in zip(sides, spans, stride, padding, strict=True):
        if step < 1 or span < 1 or low < 0 or high < 0:
            raise SigmaGraphError("windows, strides and dilations start at 1, padding at 0")
        if span > side + low + high:
            raise SigmaGraphError(f"a window of {span} does not fit a side of {side} with padding {low} and {high}")
        result.append((side + low + high - span) // step + 1)
    return tuple(result)


# -- pooling -----------------------------------------------------------------------------------------------------------
def pooled(x: Shape, *, window: Shape, stride: Shape, padding: Padding) -> Shape:
    """Slide a window over samples ``(N, C, *S)``; each place must hold at least one entry that is not padding."""
    if len(x) < 3:
        raise SigmaGraphError("samples need a batch axis, a channel axis and sides to pool: (N, C, *sides)")
    _check_entries(x[2:], window=window, stride=stride, padding=padding)
    if any(max(pads) >= span for pads, span in zip(padding, window, strict=True)):
        raise SigmaGraphError(f"padding {padding} must be smaller than the window {window}")
    return (*x[:2], *_positions(x[2:], window, stride, padding))


def pool_selected(x: Shape, index: Shape, *, window: Shape, stride: Shape, padding: Padding) -> Shape:
    """Pool with one index for each place."""
    return _inverse(index, index, pooled(x, window=window, stride=stride, padding=padding))


def unpooled(g: Shape, *, shape: Shape, window: Shape, stride: Shape, padding: Padding) -> Shape:
    """Take the samples' shape if pooling it gives the operand's."""
    return _inverse(shape, g, pooled(shape, window=window, stride=stride, padding=padding))


def pool_scattered(g: Shape, index: Shape, *, shape: Shape, window: Shape, stride: Shape, padding: Padding) -> Shape:
    """Take the samples' shape if pooling it gives both operands'."""
    _inverse(shape, index, pooled(shape, window=window, stride=stride, padding=padding))
    return unpooled(g, shape=shape, window=window, stride=stride, padding=padding)


# -- random bits and loops ---------------------------------------------------------------------------------------------
def random(key: Shape, iteration: Shape, row: Shape, scan: Shape, *, shape: Shape, stream: int) -> Shape:
    """Take the wanted shape."""
    if (key, iteration, row, scan) != ((2,), (), (), ()):
        raise SigmaGraphError("the key has shape (2,); iteration, row and scan index are scalars")
    return shape


def looped(*shapes: Shape, body: Any, carries: int, sequences: int, length: int, reverse: bool) -> Shape:
    """Check the operands of a scan against its body; the results are read with part."""
    if len(shapes) != len(body.inputs):
        raise SigmaGraphError(f"the body takes {len(body.inputs)} values, not {len(shapes)}")
    heads = ((length,) if carries <= i < carries + sequences else () for i in range(len(shapes)))
    for i, (shape, head, inner) in enumerate(zip(shapes, heads, body.inputs, strict=True)):
        if shape != head + inner.shape:
            raise SigmaGraphError(f"operand {i} must have shape {head + inner.shape} for this body")
    for i, (before, after) in enumerate(zip(shapes[:carries], body.outputs[:carries], strict=True)):
        if before != after.shape:
            raise SigmaGraphError(f"carry {i} has shape {before} before a step and {after.shape} after it")
    return ()


def part(scan: Shape, *, index: int, shape: Shape, dtype: str) -> Shape:
    """Take the shape of one result."""
    return shape


# -- composites --------------------------------------------------------------------------------------------------------
def along(x: Shape, *, axis: int) -> Shape:
    """Keep the shape; the axis must be there."""
    chosen(x, axis=(axis,))
    return x


def classified(logits: Shape, labels: Shape) -> Shape:
    """Lose the last side, along which the classes lie."""
    if not logits or logits[:-1] != labels:
        raise SigmaGraphError(f"scores (..., classes) need one label each: a shape {logits[:-1]}, not {labels}")
    return labels


def normalised(x: Shape, scale: Shape, shift: Shape, *, epsilon: float) -> Shape:
    """Keep the shape; scale and shift are as long as the last side."""
    if not x or not scale == shift == x[-1:]:
        raise SigmaGraphError(f"scale and shift must have shape {x[-1:]}")
    return x


def dropped(x: Shape, rate: Shape, *key: Shape, stream: int) -> Shape:
    """Keep the shape; the rate is one number."""
    if rate != ():
        raise SigmaGraphError("the rate is a scalar")
    return random(*key, shape=x, stream=stream)


def attended(q: Shape, k: Shape, v: Shape) -> Shape:
    """Weigh values (..., s, e) by the likeness of queries (..., l, d) and keys (..., s, d)."""
    if min(map(len, (q, k, v))) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise SigmaGraphError("it takes queries (..., l, d), keys (..., s, d) and values (..., s, e)")
    return (*broadcast(q[:-2], k[:-2], v[:-2]), q[-2], v[-1])
