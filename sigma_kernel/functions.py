"""Functions of the graph, for layers, costs, metrics and optimisers: ``from sigma_kernel import functions as f``.

These are the ops of the table, with negative axes and defaults, and functions composed of them. Of nodes they make
nodes, in which a number or an array is a constant of the other operands' dtype. Of arrays alone they return an array.

At points without a derivative, slopes are: ``abs``, ``sign``, ``floor`` and ``relu`` 0; ``maximum`` and ``minimum`` of
equal operands one half for each; ``where`` that of the chosen operand, even if the other's is NaN; ``mod`` 1 and
``-floor(x / y)``; at 0, ``x ** 0`` 0 and ``sqrt`` infinity. Other functions document theirs.
"""

# ruff: noqa: I001  (with one name per line, the table of names below would be unreadable)
from __future__ import annotations

import builtins
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import matrices, ops, rewriting, spectra
from sigma_kernel.graph.calculus import (
    evaluate as evaluate, gradient as gradient, hessian_vector_product as hessian_vector_product,
)  # fmt: skip
from sigma_kernel.graph.contraction import contract
from sigma_kernel.graph.meaning import MEANINGS as MEANINGS
from sigma_kernel.graph.mistakes import explain_mistakes, unknown_function
from sigma_kernel.graph.node import (
    Axis, Node, Shape, Spec, axes, constant as constant, trace_open, place, symbol as symbol, trace as trace,
)  # fmt: skip
from sigma_kernel.graph.ops import (
    Array, Body, Looped, dropout as dropout, full as full, matmul as matmul, random_bits as random_bits,
    softmax_cross_entropy as softmax_cross_entropy,
)  # fmt: skip

globals().update({row.name: row for row in ops.without_attributes()})
if TYPE_CHECKING:  # the same ops, for type checkers; python -m sigma_testing.generate writes the list
    from sigma_kernel.graph.ops import (
        abs as abs, add as add, cos as cos, div as div, equal as equal, erf as erf, exp as exp, expm1 as expm1,
        floor as floor, gelu as gelu, greater as greater, greater_equal as greater_equal, is_finite as is_finite,
        log as log, log1p as log1p, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
        maximum as maximum, minimum as minimum, mod as mod, mul as mul, neg as neg, pow as pow, relu as relu,
        sigmoid as sigmoid, sign as sign, silu as silu, sin as sin, softplus as softplus, sqrt as sqrt, stop as stop,
        sub as sub, tanh as tanh, where as where,
    )  # fmt: skip

Sides = int | Sequence[int]
Other: TypeAlias = Array | np.ndarray | float  # a further operand: it may be a constant


def _sides(value: Sides, rank: int) -> Shape:
    """Return one value for each side."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


# -- fills and comparisons ---------------------------------------------------------------------------------------------
def zeros(shape: Sequence[int], dtype: str = "float32") -> Node:
    """Return zeros."""
    return full(0, tuple(shape), dtype)


def ones(shape: Sequence[int], dtype: str = "float32") -> Node:
    """Return ones."""
    return full(1, tuple(shape), dtype)


def eye(rows: int, columns: int | None = None, offset: int = 0, dtype: str = "float32") -> Node:
    """Return ``(rows, columns)``, square by default: 1 on the diagonal, ``offset`` columns to its right, else 0."""
    sides = (operator.index(rows), operator.index(rows if columns is None else columns))
    return cast(equal(iota(sides, 0) + operator.index(offset), iota(sides, 1)), dtype)


def iota(shape: Sequence[int], axis: int = -1, dtype: str = "int32") -> Node:
    """Return the index along an axis."""
    return ops.iota(shape=tuple(shape), axis=axis % len(shape), dtype=dtype)


def less(x: Array | float, y: Array | float) -> Array:
    """Return whether x is below y."""
    return greater(y, x)


def less_equal(x: Array | float, y: Array | float) -> Array:
    """Return whether x is at most y."""
    return greater_equal(y, x)


def not_equal(x: Array | float, y: Array | float) -> Array:
    """Return whether x and y differ; NaN differs from itself."""
    return logical_not(equal(x, y))


def one_hot(labels: Array, classes: int, dtype: str = "float32") -> Array:
    """Return ``(*labels.shape, classes)``: 1 at each label, else 0."""
    return cast(ops.hot(labels, classes), dtype)


def hits(scores: Array, labels: Array, k: int = 1) -> Array:
    """Return bool ``labels.shape``: whether fewer than k classes score higher than the label; False for NaN."""
    own = sum(where(ops.hot(labels, scores.shape[-1]), scores, 0), axis=-1, keepdims=True)
    above = cast(logical_not(greater_equal(own, scores)), "int32")
    return less(sum(above, axis=-1), k)


# -- elementwise -------------------------------------------------------------------------------------------------------
def cast(x: Array, dtype: str) -> Array:
    """Return x in another dtype.

    To an integer, fractions are truncated, floats beyond the range are clipped to it, and NaN becomes 0. Integers that
    do not fit wrap. To bool, everything but 0 is true, NaN included.
    """
    return ops.cast(x, dtype=dtype)


def square(x: Array) -> Array:
    """Return the square."""
    return mul(x, x)


def clip(x: Array, low: Other[Array], high: Other[Array]) -> Array:
    """Return x clipped to ``[low, high]``; NaN if any is NaN. At an end, x has slope 1 and the end 0."""
    above = where(x >= low, x, maximum(x, low))
    return where(above <= high, above, minimum(above, high))


def leaky_relu(x: Array, slope: Other[Array] = 0.01) -> Array:
    """Return x above 0 and ``slope * x`` below (Maas, Hannun and Ng, 2013); at 0 the slope is ``slope``."""
    return where(x > 0.0, x, x * slope)


def elu(x: Array, alpha: Other[Array] = 1.0) -> Array:
    """Return x above 0 and ``alpha * (exp(x) - 1)`` below (Clevert, Unterthiner and Hochreiter, arXiv:1511.07289).

    At 0 the slope is ``alpha``.
    """
    above = x > 0.0
    return where(above, x, expm1(where(above, 0.0, x)) * alpha)


# -- reductions --------------------------------------------------------------------------------------------------------
def sum(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the sum over axes, all by default."""
    return x.sum(axis, keepdims=keepdims)  # type: ignore[no-any-return]


def max(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the maximum over axes, all by default; equal maxima share the gradient evenly."""
    return x.max(axis, keepdims=keepdims)  # type: ignore[no-any-return]


def min(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the minimum over axes, all by default; equal minima share the gradient evenly."""
    return x.min(axis, keepdims=keepdims)  # type: ignore[no-any-return]


def argmax(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """Return the index of the maximum, the first one on ties, int32."""
    indices = ops.argmax(x, axis=place(x.shape, axis))
    return indices if keepdims else squeeze(indices, axis)


def prod(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the product over axes, all by default: 1 over none. Its slopes are right where factors are 0."""
    gone = axes(x.shape, axis)
    result: Array = ops.prod(x, axis=gone)
    return result if keepdims else squeeze(result, gone)


def cumsum(x: Array, axis: int = -1, reverse: bool = False) -> Array:
    """Return the sums of the entries up to each along an axis, itself included; from the last one on with reverse."""
    return ops.cumsum(x, axis=place(x.shape, axis), reverse=reverse)


def mean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the mean over axes, all by default."""
    return x.mean(axis, keepdims=keepdims)  # type: ignore[no-any-return]


def variance(x: Array, axis: Axis = None, keepdims: bool = False, correction: float = 0.0) -> Array:
    """Return the variance over axes: the sum of squared deviations over their number minus ``correction``.

    The mean is subtracted twice: after the first time, the rest of a large mean is computed more exactly.
    """
    shifted: Array = x - mean(x, axis, keepdims=True)
    centred: Array = shifted - mean(shifted, axis, keepdims=True)
    count: int = math.prod(x.shape[a] for a in axes(x.shape, axis))
    return div(sum(square(centred), axis, keepdims), count - correction)


def norm(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the Euclidean norm over axes, all by default; its slope at 0 is 0."""
    squares = sum(square(x), axis, keepdims)
    none = equal(squares, 0.0)
    return where(none, 0.0, sqrt(where(none, 1.0, squares)))


def log_sum_exp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return ``log(sum(exp(x)))`` without overflow; -inf if all entries are -inf."""
    gone = axes(x.shape, axis)
    largest = stop(ops.max(x, axis=gone))
    shift = where(is_finite(largest), largest, 0.0)
    result = log(ops.sum(exp(x - shift), axis=gone)) + shift
    return result if keepdims else squeeze(result, gone)


def softmax(x: Array, axis: int = -1) -> Array:
    """Return ``exp(x) / sum(exp(x))`` along an axis."""
    return ops.softmax(x, axis=place(x.shape, axis))


def log_softmax(x: Array, axis: int = -1) -> Array:
    """Return the logarithm of :func:`softmax`."""
    return ops.log_softmax(x, axis=place(x.shape, axis))


def layer_norm(x: Array, scale: Other[Array], shift: Other[Array], epsilon: float = 1e-5) -> Array:
    """Return x with mean 0 and variance 1 along the last axis, then scaled and shifted."""
    return ops.layer_norm(x, scale, shift, epsilon=epsilon)


def attention(
    queries: Array, keys: Other[Array], values: Other[Array], mask: Other[Array] | None = None, causal: bool = False
) -> Array:
    """Return scaled dot-product attention of queries ``(..., l, d)`` to keys ``(..., s, d)``: ``(..., l, e)``.

    Values are ``(..., s, e)``; leading axes broadcast. A query attends to the keys for which the mask, bool and
    broadcast to ``(..., l, s)``, is true; with ``causal``, query i to none after key i. Where there is no key to attend
    to, the result is 0, and so is its gradient.
    """
    return ops.attention(queries, keys, values, *(() if mask is None else (mask,)), causal=causal)


def attention_weights(queries: Node, keys: Node, mask: Node | None = None, causal: bool = False) -> Node:
    """Return the weights ``(..., l, s)`` of the values in :func:`attention`; each row adds up to 1, or is 0."""
    return ops.attention_weights(queries, keys, *(() if mask is None else (mask,)), causal=causal)


# -- orders ------------------------------------------------------------------------------------------------------------
def sort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """Return the entries along an axis in order; NaN counts as the greatest.

    Equal entries stay in their order, downwards too, and so the gradient of an entry goes to the one that it is.
    """
    return ops.sort(x, axis=place(x.shape, axis), descending=descending)


def argsort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """Return the indices of the entries in the order of :func:`sort`, int32."""
    return ops.argsort(x, axis=place(x.shape, axis), descending=descending)


def top_k(x: Array, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """Return the k largest entries along an axis, or the smallest, in order, and their indices, int32.

    Of equal entries, the first ones count; NaN counts as the greatest.
    """
    at, count = place(x.shape, axis), operator.index(k)
    if not 0 <= count <= x.shape[at]:
        raise SigmaGraphError(f"top_k({x.shape}): k must be from 0 to {x.shape[at]}, the side of axis {at} (got {k}).")
    both = sort(x, at, descending=largest), argsort(x, at, descending=largest)
    return ops.narrow(both[0], at, 0, count), ops.narrow(both[1], at, 0, count)


# -- products ----------------------------------------------------------------------------------------------------------
def einsum(subscripts: str, *operands: Array) -> Array:
    """Return a sum of products in Einstein's notation: ``"bij,bjk->bik"`` is a product of matrices in a batch.

    A label stands for an axis: operands share axes with the same label, an operand that has it twice gives its
    diagonal, and labels that the result has not are summed. Without ``->``, the result has the labels that occur once,
    in the order of the alphabet. An ellipsis stands for further axes, which broadcast, as sides of 1 do.
    """
    return contract(subscripts, *operands)  # type: ignore[no-any-return]


# -- matrices ----------------------------------------------------------------------------------------------------------
def solve(a: Array, b: Other[Array]) -> Array:
    """Return x with ``a @ x = b``, for square matrices a ``(..., n, n)`` and right sides b ``(..., n, m)`` or ``(n,)``.

    Leading axes broadcast. The solution of a singular matrix is NaN.
    """
    right: Any = b if hasattr(b, "shape") else np.asarray(b)
    vector = len(right.shape) == 1
    result: Array = matrices.solve(a, expand(right, 1) if vector else right)
    return squeeze(result, -1) if vector else result


def cholesky(a: Array) -> Array:
    """Return the lower triangular L with ``L @ L.T = a``, for symmetric positive definite matrices ``(..., n, n)``.

    Of another matrix, the symmetric part counts; the result is NaN where that is not positive definite. The gradient is
    symmetric.
    """
    return matrices.cholesky(a)


def svd(x: Array) -> tuple[Array, Array, Array]:
    """Return the reduced singular value decomposition of matrices ``(..., m, n)``, with ``x = u * s @ v``.

    With k the smaller of m and n: left vectors u ``(..., m, k)``, values s ``(..., k)`` in falling order, and right
    vectors as rows, v ``(..., k, n)``. The sign of a pair of vectors makes the first larger entry of the left one
    positive. Where values are equal, or 0, vectors are any of several, and their gradients are not finite; that of the
    values alone is defined everywhere.
    """
    rows = matrices.svd(x)
    last, (height, width) = len(rows.shape) - 1, x.shape[-2:]
    left, values, right = ops.pieces(rows, (height, 1, width), last)
    return ops.swap_axes(left), squeeze(values, -1), right


# -- spectra -----------------------------------------------------------------------------------------------------------
def rfft(x: Array, axis: int = -1) -> Array:
    """Return the discrete Fourier transform of real entries along an axis, and a new last axis: real, imaginary part.

    The axis of n entries becomes one of ``n // 2 + 1`` frequencies; the others are their complex conjugates.
    """
    at: int = place(x.shape, axis)
    last: int = len(x.shape) - 1
    spectrum = spectra.rfft(permute(x, [*range(at), *range(at + 1, last + 1), at]))
    return permute(spectrum, [*range(at), last, *range(at, last), last + 1])


def irfft(y: Array, n: int | None = None, axis: int = -1) -> Array:
    """Return the real entries of which ``y (..., frequencies, 2)`` is the transform :func:`rfft`, 1 / n included.

    The axis is counted without the last one, of real and imaginary parts. There are n entries: by default
    ``2 * (frequencies - 1)``, an even number.
    """
    at: int = place(y.shape[:-1], axis)
    last: int = len(y.shape) - 2
    spectrum = permute(y, [*range(at), *range(at + 1, last + 1), at, last + 1])
    signal = spectra.irfft(spectrum, n=2 * (y.shape[at] - 1) if n is None else operator.index(n))
    return permute(signal, [*range(at), last, *range(at, last)])


# -- form --------------------------------------------------------------------------------------------------------------
def reshape(x: Array, shape: Sequence[int]) -> Array:
    """Return x in another shape; a side of -1 is inferred."""
    return x.reshape(tuple(shape))


def flatten(x: Array, start: int = 1) -> Array:
    """Return x with all axes from ``start`` on merged to one; by default, the batch axis is kept."""
    return ops.reshape(x, shape=(*x.shape[:start], math.prod(x.shape[start:])))


def permute(x: Array, axes: Sequence[int]) -> Array:
    """Return x with its axes in another order."""
    return ops.permute(x, axes=tuple(place(x.shape, a) for a in axes))


def swap_axes(x: Array, first: int, second: int) -> Array:
    """Return x with two axes exchanged."""
    return ops.swap_axes(x, place(x.shape, first), place(x.shape, second))


def stretch(x: Array, shape: Sequence[int]) -> Array:
    """Return x broadcast to a shape."""
    return ops.stretch(x, shape=tuple(shape))


def squeeze(x: Array, axis: Axis = None) -> Array:
    """Return x without axes of side 1, all of them by default."""
    gone = tuple(i for i, side in enumerate(x.shape) if side == 1) if axis is None else axes(x.shape, axis)
    if any(x.shape[a] != 1 for a in gone):
        raise SigmaGraphError(f"squeeze({x.shape}): axes {gone} have sides other than 1. Use reshape.")
    return ops.reshape(x, shape=tuple(side for i, side in enumerate(x.shape) if i not in gone))


def expand(x: Array, axis: int) -> Array:
    """Return x with a new axis of side 1 at this position."""
    at: int = place(x.shape, axis, extra=1)
    return ops.reshape(x, shape=(*x.shape[:at], 1, *x.shape[at:]))


def slice(x: Array, start: Sequence[int], stop: Sequence[int], step: Sequence[int] | None = None) -> Array:
    """Return the entries from ``start`` to before ``stop`` along each axis."""
    steps = (1,) * len(x.shape) if step is None else tuple(step)
    return ops.slice(x, start=tuple(start), stop=tuple(stop), step=steps)


def narrow(x: Array, axis: int, start: int, stop: int, step: int = 1) -> Array:
    """Return the entries from ``start`` to before ``stop`` along one axis."""
    return ops.narrow(x, place(x.shape, axis), start, stop, step)


def split(x: Array, sizes: Sides, axis: int = -1) -> tuple[Array, ...]:
    """Split an axis into a number of equal pieces, or into pieces of the given sizes."""
    at = place(x.shape, axis)
    pieces = [x.shape[at] // sizes] * sizes if isinstance(sizes, int) else list(sizes)
    if not pieces or builtins.sum(pieces) != x.shape[at]:
        raise SigmaGraphError(f"split({x.shape}): {sizes} does not divide a side of {x.shape[at]}")
    return ops.pieces(x, pieces, at)


def concat(*nodes: Array, axis: int = -1) -> Array:
    """Concatenate along an axis."""
    return ops.concat(*nodes, axis=place(nodes[0].shape, axis))


def stack(*nodes: Array, axis: int = 0) -> Array:
    """Stack along a new axis."""
    return concat(*(expand(x, axis) for x in nodes), axis=axis)


def pad(
    x: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None, value: float = 0
) -> Array:
    """Add entries before, after and between those of each axis."""
    between = (0,) * len(x.shape) if interior is None else tuple(interior)
    return ops.pad(x, low=tuple(low), high=tuple(high), interior=between, value=value)


def take(x: Array, indices: Other[Array], axis: int = 0) -> Array:
    """Return the entries at indices along an axis; indices are int32 or int64 of any shape.

    Indices count from 0, never from the end; those out of range are an error.
    """
    return ops.take(x, indices, axis=place(x.shape, axis))


def scatter_add(x: Array, indices: Other[Array], updates: Other[Array], axis: int = 0) -> Array:
    """Return x with updates added at the entries that :func:`take` would return; repeats accumulate."""
    return ops.scatter_add(x, indices, updates, axis=place(x.shape, axis))


# -- windows -----------------------------------------------------------------------------------------------------------
Padding = int | Sequence[int | Sequence[int]]


def convolution(
    x: Array, kernels: Array | np.ndarray, stride: Sides = 1, padding: Padding = 0, dilation: Sides = 1, groups: int = 1
) -> Array:
    """Convolve samples ``(N, C, *S)`` with kernels ``(O, C / groups, *K)``; settings are for all sides, or one each."""
    rank = len(kernels.shape) - 2
    how = {"stride": _sides(stride, rank), "padding": _pairs(padding, rank), "dilation": _sides(dilation, rank)}
    return ops.convolution(x, kernels, **how, groups=groups)


def convolution_transpose(
    x: Array, kernels: Array | np.ndarray, stride: Sides = 1, padding: Padding = 0, dilation: Sides = 1,
    groups: int = 1, output_padding: Sides = 0,
) -> Array:  # fmt: skip
    """Apply the transpose of :func:`convolution` to ``(N, O, *S)``, with kernels ``(O, C / groups, *K)``.

    The result is ``(N, C, *S')``, each n becoming ``(n - 1) * stride + (k - 1) * dilation + 1 - before - after +
    output_padding``; the output padding is less than the stride.
    """
    rank = len(kernels.shape) - 2
    steps, gaps, added = (_sides(value, rank) for value in (stride, dilation, output_padding))
    pads, sides = _pairs(padding, rank), zip(x.shape[2:], kernels.shape[2:], strict=True)
    shape = [x.shape[0], kernels.shape[1] * groups]
    for (n, k), step, gap, pad, more in zip(sides, steps, gaps, pads, added, strict=True):
        shape.append((n - 1) * step + (k - 1) * gap + 1 - builtins.sum(pad) + more)
    how = {"stride": steps, "padding": pads, "dilation": gaps, "groups": groups}
    return ops.convolution_input(x, kernels, shape=tuple(shape), **how)


def max_pool(x: Array, window: Sides, stride: Sides | None = None, padding: Padding = 0) -> Array:
    """Return the maximum of each window of samples ``(N, C, *S)``; the stride is the window by default.

    The first of equal maxima gets the whole gradient.
    """
    return ops.max_pool(x, **_window(x, window, stride, padding))


def sum_pool(x: Array, window: Sides, stride: Sides | None = None, padding: Padding = 0) -> Array:
    """Return the sum of each window of samples ``(N, C, *S)``; the stride is the window by default."""
    return ops.sum_pool(x, **_window(x, window, stride, padding))


def _window(x: Node | np.ndarray, window: Sides, stride: Sides | None, padding: Padding) -> dict[str, Any]:
    rank = len(x.shape) - 2
    steps = _sides(window if stride is None else stride, rank)
    return {"window": _sides(window, rank), "stride": steps, "padding": _pairs(padding, rank)}


def _pairs(padding: Padding, rank: int) -> tuple[tuple[int, ...], ...]:
    """Return padding as ``(before, after)`` for each side."""
    sides = (padding,) * rank if isinstance(padding, int) else padding
    return tuple((side, side) if isinstance(side, int) else tuple(side) for side in sides)


# -- loops -------------------------------------------------------------------------------------------------------------
def scan(
    body: Body,
    carry: Sequence[Node],
    sequences: Sequence[Node],
    constants: Sequence[Node] = (),
    reverse: bool = False,
    length: int | None = None,
) -> Looped:
    """Loop over the leading axis of the sequences; return the last carries and the stacked outputs of all steps.

    ``body(*carry, *one entry of each sequence, *constants)`` returns the new carries and the outputs of a step. Other
    nodes of the surrounding graph that it uses are constants as well; nodes that depend only on them are computed once,
    before the loop. With ``reverse``, steps run from the last entry to the first, and outputs are stacked at the
    positions read. ``length`` is required if there is no sequence. Gradients read carries and outputs, and recompute
    the rest of a step: return as outputs the values that cost more to compute than to keep.
    """
    for name, value in {"carry": carry, "sequences": sequences, "constants": constants}.items():
        if isinstance(value, Node):
            raise SigmaGraphError(f"scan: {name} must be a list of nodes (got one node). Put it in brackets.")
    if length is None and not (sequences and sequences[0].shape):
        raise SigmaGraphError("scan: the number of steps is unknown. Pass a sequence, or a length.")
    steps = sequences[0].shape[0] if length is None else length
    specs = [*(x.spec for x in carry), *(Spec(x.shape[1:], x.dtype) for x in sequences), *(x.spec for x in constants)]
    graph, outside = rewriting.close_graph(trace_open(lambda *operands: _run_body(body, operands, len(carry)), *specs))
    return ops.loop(graph, carry, sequences, [*constants, *outside], steps, reverse)


def _run_body(body: Callable[..., Any], operands: Sequence[Node], carries: int) -> tuple[Node, ...]:
    """Call the body; return its carries and outputs as one tuple."""
    match body(*operands):
        case [[*after], [*outputs]] if len(after) == carries:
            return (*after, *outputs)
        case result:
            raise SigmaGraphError(f"scan: the body must return ([{carries} new carries], [outputs]), not {result!r}.")


# -- mistakes ----------------------------------------------------------------------------------------------------------
_NAMES = [name for name, row in globals().items() if inspect.isfunction(row) and row.__module__ == __name__]
globals().update({name: explain_mistakes(globals()[name]) for name in _NAMES if not name.startswith("_")})

if not TYPE_CHECKING:  # where any name would pass

    def __getattr__(name: str) -> NoReturn:
        """Raise an error that names a function that is similar, or does the same."""
        raise unknown_function(name, [*_NAMES, *ops.OPS, "gradient", "evaluate", "constant"])
