"""Shape rules: functions from the operands' shapes and the attributes to the shape of the result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import Shape

Padding = tuple[tuple[int, int], ...]


def _require(right: bool, otherwise: str) -> None:
    if not right:
        raise SigmaGraphError(otherwise)


def _require_axis(axis: int, x: Shape) -> None:
    _require(0 <= axis < len(x), f"there is no axis {axis}: the rank is {len(x)}")


def _require_entries(x: Shape, **entries: Sequence[Any]) -> None:
    for name, values in entries.items():
        fits = len(values) == len(x)
        _require(fits, f"{name} {tuple(values)} must have {len(x)} entries, one for each side of {x}")


# -- elementwise -------------------------------------------------------------------------------------------------------
def same(x: Shape, *, dtype: str = "") -> Shape:
    """Return the operand's shape."""
    return x


def binary(x: Shape, y: Shape) -> Shape:
    """Broadcast two operands."""
    return x if x == y else broadcast(x, y)


def ternary(x: Shape, y: Shape, z: Shape) -> Shape:
    """Broadcast three operands."""
    return broadcast(x, y, z)


ELEMENTWISE = (same, binary, ternary)  # an element of the result depends on the operands' at its position


def broadcast(*shapes: Shape) -> Shape:
    """Broadcast shapes, aligned at the right; sides of 1 stretch."""
    rank = max(map(len, shapes), default=0)
    sides = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return tuple(map(_common, sides))


def _common(sides: Sequence[int]) -> int:
    wide = {side for side in sides if side != 1} or {1}
    words = " and ".join(map(str, sides))
    _require(len(wide) == 1, f"sides {words} do not broadcast. They must be equal, or one of them 1.")
    return wide.pop()


# -- reductions --------------------------------------------------------------------------------------------------------
def reduction(x: Shape, *, axis: tuple[int, ...]) -> Shape:
    """Set the reduced sides to 1."""
    for a in axis:
        _require_axis(a, x)
    return tuple(1 if i in axis else side for i, side in enumerate(x))


def selection(x: Shape, *, axis: tuple[int, ...]) -> Shape:
    """Reduce to a chosen entry; the reduced sides must not be empty."""
    result = reduction(x, axis=axis)
    _require(all(x[a] for a in axis), "an empty side has no maximum")
    return result


def location(x: Shape, *, axis: int) -> Shape:
    """Reduce one axis to an index."""
    return selection(x, axis=(axis,))


def accumulation(x: Shape, *, axis: int, reverse: bool) -> Shape:
    """Return the operand's shape, which must have this axis; it may be empty."""
    _require_axis(axis, x)
    return x


def order(x: Shape, *, axis: int, descending: bool) -> Shape:
    """Return the operand's shape, which must have this axis; it may be empty."""
    _require_axis(axis, x)
    return x


# -- form --------------------------------------------------------------------------------------------------------------
def reshaping(x: Shape, *, shape: Shape) -> Shape:
    """Return the given shape, which must have as many elements."""
    _require(prod(x) == prod(shape), f"shape {shape} holds {prod(shape)} elements, not {prod(x)}")
    return shape


def permutation(x: Shape, *, axes: tuple[int, ...]) -> Shape:
    """Reorder the sides."""
    _require(sorted(axes) == list(range(len(x))), f"axes {axes} must name each of the {len(x)} axes once")
    return tuple(x[a] for a in axes)


def stretching(x: Shape, *, shape: Shape) -> Shape:
    """Return the given shape, to which the operand must broadcast."""
    _require(broadcast(x, shape) == shape, f"it does not broadcast to {shape}")
    return shape


def slicing(x: Shape, *, start: Shape, stop: Shape, step: Shape) -> Shape:
    """Count the entries between start and stop."""
    _require_entries(x, start=start, stop=stop, step=step)
    for side, a, b, by in zip(x, start, stop, step, strict=True):
        _require(0 <= a <= b <= side and by >= 1, f"{a}:{b}:{by} is not a slice of a side of {side}")
    return tuple(-(-(b - a) // by) for a, b, by in zip(start, stop, step, strict=True))


def pad(x: Shape, *, low: Shape, high: Shape, interior: Shape, value: float) -> Shape:
    """Add entries before, after and between those of the operand."""
    _require_entries(x, low=low, high=high, interior=interior)
    _require(min((*low, *high, *interior), default=0) >= 0, "padding cannot be negative. Use slice to remove entries.")
    return tuple(a + spread(side, i + 1) + b for side, a, b, i in zip(x, low, high, interior, strict=True))


def spread(count: int, step: int) -> int:
    """Return the length of a side whose entries are ``step`` apart."""
    return (count - 1) * step + 1 if count else 0


def concatenation(*shapes: Shape, axis: int) -> Shape:
    """Add up the sides along an axis."""
    _require(bool(shapes), "at least one operand is needed")
    _require_axis(axis, shapes[0])
    others = {(*shape[:axis], -1, *shape[axis + 1 :]) for shape in shapes}
    _require(len(others) == 1, f"the sides must be equal, except along axis {axis}")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def constant(*, value: Any, dtype: str) -> Shape:
    """Return the shape of a constant array."""
    return tuple(value.array.shape)


def enumeration(*, shape: Shape, axis: int, dtype: str) -> Shape:
    """Return the given shape."""
    _require_axis(axis, shape)
    return shape


def indexing(x: Shape, indices: Shape, *, axis: int) -> Shape:
    """Replace an axis by the shape of the indices."""
    _require_axis(axis, x)
    return (*x[:axis], *indices, *x[axis + 1 :])


def scattering(x: Shape, indices: Shape, updates: Shape, *, axis: int) -> Shape:
    """Return the operand's shape; the updates have the shape that take returns."""
    read = indexing(x, indices, axis=axis)
    _require(updates == read, f"the updates must have shape {read}")
    return x


# -- linear maps and windows -------------------------------------------------------------------------------------------
def product(x: Shape, y: Shape, *, dtype: str = "") -> Shape:
    """Multiply the last two sides; leading ones broadcast."""
    _require(min(len(x), len(y)) >= 2, "both operands need at least two axes. Reshape the vector.")
    _require(x[-1] == y[-2], f"inner sides differ: {x[-1]} and {y[-2]}")
    return (*broadcast(x[:-2], y[:-2]), x[-2], y[-1])


def convolution(x: Shape, w: Shape, *, stride: Shape, padding: Padding, dilation: Shape, groups: int) -> Shape:
    """Slide kernels ``(O, C / groups, *K)`` over samples ``(N, C, *S)``."""
    _require(len(x) == len(w) > 2, "samples (N, C, *sides) and kernels (O, C / groups, *sides) need equally many sides")
    _require_entries(x[2:], stride=stride, padding=padding, dilation=dilation)
    fits = groups >= 1 and w[0] % groups == 0 and x[1] == w[1] * groups
    _require(fits, f"{x[1]} channels in {groups} group(s) do not fit {w[0]} kernels over {w[1]} channels each")
    spans = tuple(spread(k, d) for k, d in zip(w[2:], dilation, strict=True))
    return (x[0], w[0], *_positions(x[2:], spans, stride, padding))


def convolved_input(g: Shape, w: Shape, *, shape: Shape, **how: Any) -> Shape:
    """Return the given shape of samples, whose convolution must have the operand's shape."""
    return _undone(shape, g, convolution(shape, w, **how))


def convolved_kernel(x: Shape, g: Shape, *, shape: Shape, **how: Any) -> Shape:
    """Return the given shape of kernels, whose convolution must have the operand's shape."""
    return _undone(shape, g, convolution(x, shape, **how))


def pooling(x: Shape, *, window: Shape, stride: Shape, padding: Padding) -> Shape:
    """Slide a window over samples ``(N, C, *S)``; each position must cover an entry that is not padding."""
    _require(len(x) > 2, "samples need a batch axis, a channel axis and sides to pool: (N, C, *sides)")
    _require_entries(x[2:], window=window, stride=stride, padding=padding)
    small = all(max(pads) < span for pads, span in zip(padding, window, strict=True))
    _require(small, f"padding {padding} must be smaller than the window {window}")
    return (*x[:2], *_positions(x[2:], window, stride, padding))


def pool_selected(x: Shape, index: Shape, **how: Any) -> Shape:
    """Pool with one index for each position."""
    return _undone(index, index, pooling(x, **how))


def unpooling(g: Shape, *indices: Shape, shape: Shape, **how: Any) -> Shape:
    """Return the given shape of samples, which must pool to the shape of every operand."""
    result = pooling(shape, **how)
    for operand in (g, *indices):
        _undone(shape, operand, result)
    return shape


def _undone(shape: Shape, operand: Shape, result: Shape) -> Shape:
    _require(operand == result, f"it must have the shape of the result, {result} (got {operand})")
    return shape


def _positions(sides: Shape, spans: Shape, stride: Shape, padding: Padding) -> Shape:
    """Return the number of positions of a window along each side."""
    result = []
    for side, span, step, (low, high) in zip(sides, spans, stride, padding, strict=True):
        _require(min(step, span) > 0 <= min(low, high), "windows, strides and dilations start at 1, padding at 0")
        fits = span <= side + low + high
        _require(fits, f"a window of {span} does not fit a side of {side} with padding {low} and {high}")
        result.append((side + low + high - span) // step + 1)
    return tuple(result)


# -- matrices and spectra ----------------------------------------------------------------------------------------------
def square_matrix(a: Shape) -> Shape:
    """Return the operand's shape, which must be that of square matrices."""
    _require(len(a) >= 2 and a[-1] == a[-2], "it takes square matrices (..., n, n)")
    return a


def solution(a: Shape, b: Shape) -> Shape:
    """Return the shape of the solutions x (..., n, m) of a @ x = b, where a is (..., n, n); leading axes broadcast."""
    square_matrix(a)
    _require(len(b) >= 2 and b[-2] == a[-1], f"the right sides must have shape (..., {a[-1]}, m)")
    return (*broadcast(a[:-2], b[:-2]), *b[-2:])


def decomposition(x: Shape) -> Shape:
    """Return one row for each singular value of matrices (..., m, n): a left vector, the value and a right vector."""
    _require(len(x) >= 2, "it takes matrices (..., m, n)")
    return (*x[:-2], min(x[-2:]), x[-2] + 1 + x[-1])


def spectrum(x: Shape) -> Shape:
    """Return the frequencies of signals (..., n), with real and imaginary parts."""
    _require(bool(x and x[-1]), "an empty side has no spectrum")
    return (*x[:-1], x[-1] // 2 + 1, 2)


def signal(y: Shape, *, n: int) -> Shape:
    """Return signals of n entries, for spectra (..., n // 2 + 1, 2)."""
    _require(n >= 1, "a signal has at least 1 entry")
    _require(y[-2:] == (n // 2 + 1, 2), f"a signal of {n} entries has a spectrum of shape (..., {n // 2 + 1}, 2)")
    return (*y[:-2], n)


# -- random bits and loops ---------------------------------------------------------------------------------------------
def random(*key: Shape, shape: Shape, stream: int) -> Shape:
    """Return the given shape."""
    _require(key == ((2,), (), (), ()), "the key has shape (2,); iteration, row and scan index are scalars")
    return shape


def scan(*shapes: Shape, body: Any, carries: int, sequences: int, length: int, reverse: bool) -> Shape:
    """Compare the operands of a scan with its body; the results are selected with part."""
    _require(len(shapes) == len(body.inputs), f"the body takes {len(body.inputs)} values, not {len(shapes)}")
    for i, (shape, inner) in enumerate(zip(shapes, body.inputs, strict=True)):
        whole = (length, *inner.shape) if carries <= i < carries + sequences else inner.shape
        _require(shape == whole, f"operand {i} must have shape {whole} for this body")
        after = body.outputs[i].shape if i < carries else shape
        _require(shape == after, f"carry {i} has shape {shape} before a step and {after} after it")
    return ()


def part(scan: Shape, *, index: int, shape: Shape, dtype: str) -> Shape:
    """Return the shape of one result."""
    return shape


# -- composites --------------------------------------------------------------------------------------------------------
def along_axis(x: Shape, *, axis: int) -> Shape:
    """Return the operand's shape, which must have this axis."""
    location(x, axis=axis)
    return x


def classification(scores: Shape, labels: Shape) -> Shape:
    """Drop the last side, the classes."""
    _require(scores[:-1] == labels, f"scores (..., classes) need labels of shape {scores[:-1]}")
    return selection(scores, axis=(len(scores) - 1,))[:-1]


def first_shape(x: Shape, gate: Shape) -> Shape:
    """Return the shape of the first operand."""
    return x


def normalisation(x: Shape, scale: Shape, shift: Shape, *, epsilon: float) -> Shape:
    """Return the operand's shape; scale and shift are as long as its last side."""
    _require(scale == shift == x[-1:] != (), f"scale and shift must have shape {x[-1:]}")
    return x


def dropout(x: Shape, rate: Shape, *key: Shape, stream: int) -> Shape:
    """Return the operand's shape; the rate is a scalar."""
    _require(rate == (), "the rate is a scalar")
    return random(*key, shape=x, stream=stream)


def attention(q: Shape, k: Shape, v: Shape, *mask: Shape, causal: bool) -> Shape:
    """Return the shape of attention of queries (..., l, d) to keys (..., s, d) with values (..., s, e).

    A mask broadcasts to the scores (..., l, s); with ``causal``, there are as many keys as queries.
    """
    fits = min(map(len, (q, k, v))) >= 2 and (q[-1], k[-2]) == (k[-1], v[-2])
    _require(fits, "the operands must be queries (..., l, d), keys (..., s, d) and values (..., s, e)")
    scores = (*broadcast(q[:-2], k[:-2]), q[-2], k[-2])
    _require(len(mask) < 2 and all(broadcast(scores, shape) == scores for shape in mask), f"a mask must fit {scores}")
    _require(not causal or q[-2] == k[-2], "causal attention is of a sequence to itself. Pass a mask for another one.")
    return (*broadcast(q[:-2], k[:-2], v[:-2]), q[-2], v[-1])


def attended_back(g: Shape, q: Shape, k: Shape, v: Shape, *mask: Shape, causal: bool, of: int) -> Shape:
    """Return the shape of the gradient of the queries, keys or values, before it is summed to theirs."""
    value = attention(q, k, v, *mask, causal=causal)
    _require(g == value, f"the gradient must have the shape of the result, {value}")
    return (*value[:-2], *(q, k, v)[of][-2:])
