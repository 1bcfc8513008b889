"""The table of ops: one row each.

    name = op("name", shape rule, dtype rule, gradient rule, facts)

A gradient rule takes the gradient of the result, the result, the operands and the attributes, and returns one node for
each operand, built from the same table and linear in the gradient. It need not undo broadcasting and is called for
floats only: :func:`sigma_kernel.graph.gradient` handles both. The gradient of an op without a rule is zero. ``scan``
and ``part`` are differentiated there, because a scan has several results.

Composites come last: the column after the gradient rule is an expansion into the rows above. One without a gradient
rule is differentiated through its expansion.

Facts follow by name, where they differ from the defaults: :class:`sigma_kernel.graph.node.Rules` lists them. Backends,
``explain``, suites and transformations read them here; a new elementwise op is one row.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, TypeVar, overload

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaGraphError, suggest_name
from sigma_kernel.graph import dtypes, shapes
from sigma_kernel.graph.namespace import evaluate_graph
from sigma_kernel.graph.node import FACTS, INTEGERS, MEANINGS, OPS, Constant, Graph, Node, Rules, Shape, constant
from sigma_kernel.graph.reprs import brief

Array = TypeVar("Array", Node, np.ndarray)
Gradient = Callable[..., Node | tuple[Node | None, ...] | None]
Body = Callable[..., tuple[Sequence[Node], Sequence[Node]]]  # of a loop: it returns new carries, and outputs of a step
Looped = tuple[tuple[Node, ...], tuple[Node, ...]]  # the last carries, and the stacked outputs of all steps
# Scores of hidden keys: below all others, and far enough from infinity for the difference of two scores to be finite.
HIDDEN = {"float16": -3e4, "bfloat16": -1e38, "float32": -1e38, "float64": -1e307}


@frozen(eq=False)
class Op(Rules):
    """A row of the table as a function: it makes a node, or of arrays alone computes an array at once."""

    __repr__ = brief

    @overload  # type: ignore[override]
    def __call__(self, *inputs: Node | float, **attrs: Any) -> Node: ...
    @overload
    def __call__(self, first: Node, /, *others: Node | Constant, **attrs: Any) -> Node: ...
    @overload
    def __call__(self, *inputs: np.ndarray | float, **attrs: Any) -> np.ndarray: ...
    @overload
    def __call__(self, first: np.ndarray, second: Node, /, *others: Node | Constant, **attrs: Any) -> Node: ...
    def __call__(self, *inputs: Any, **attrs: Any) -> Node | np.ndarray:  # type: ignore[misc]  # ``first`` is positional
        """Return a node, or the value of one whose operands are arrays and numbers."""
        result = super().__call__(*inputs, **attrs)
        return result if not inputs or Node in map(type, inputs) else evaluate_graph(Graph((), (result,)))[0]


def op(
    name: str,
    shape: Callable[..., Shape],
    dtype: Callable[..., str],
    gradient: Gradient | None = None,
    expansion: Callable[..., Node] | None = None,
    meaning: Callable[..., Any] | None = None,
    **facts: Any,
) -> Op:
    """Add an op to the table; a plugin's op is named ``distribution:name``.

    An op without an expansion needs a ``meaning``, a function of an array namespace, its operands and its attributes
    (see :mod:`sigma_kernel.graph.meaning`), or the name of its function in the array API ``standard``. ``facts`` are
    the other columns of the table; :class:`sigma_kernel.graph.node.Rules` lists them. Raises SigmaGraphError if the
    name is taken, or a fact is unknown.
    """
    if name in OPS:
        raise SigmaGraphError(f"op {name!r} is already defined. Choose another name.")
    _check_facts(name, facts)
    row = OPS[name] = Op(
        name, shape, dtype, gradient, expansion, **_implied_facts(name, shape, expansion, facts) | facts
    )
    if meaning is not None:
        MEANINGS[name] = meaning
    elif row.standard:
        MEANINGS.setdefault(name, _standard(row.standard))
    return row


def _check_facts(name: str, facts: Mapping[str, Any]) -> None:
    for fact, value in facts.items():
        if fact not in FACTS:
            raise SigmaGraphError(f"op {name!r}: there is no fact {fact!r}.{suggest_name(fact, FACTS)}")
        if FACTS[fact] and value not in FACTS[fact]:
            raise SigmaGraphError(f"op {name!r}: {fact} is one of {', '.join(FACTS[fact])} (got {value!r}).")


def _implied_facts(name: str, shape: Any, expansion: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default facts of elementwise ops, and of ops that move entries."""
    apart, primitive = shape in shapes.ELEMENTWISE, expansion is None
    moves = facts.get("entries") in ("moved", "gathered") or bool(facts.get("view"))
    return {
        "entries": "apart" if apart else "mixed",
        "rounding": "exact" if moves else "once",
        "signed": primitive and (apart or moves),
        "standard": name if primitive and apart and ":" not in name else "",
    }


def _standard(name: str) -> Callable[..., Any]:
    """Return the array API standard's function of this name, as a meaning."""
    return lambda ns, *operands: getattr(ns.xp, name)(*operands)


def full(value: float, shape: Shape, dtype: str) -> Node:
    """Return a number broadcast to a shape."""
    return stretch(constant(value, dtype), shape=shape) if shape else constant(value, dtype)


def swap_axes(x: Array, first: int = -2, second: int = -1) -> Array:
    """Swap two axes, the last ones by default."""
    axes = list(range(len(x.shape)))
    axes[first], axes[second] = axes[second], axes[first]
    return permute(x, axes=axes)


def narrow(x: Array, axis: int, start: int, stop: int, step: int = 1) -> Array:
    """Slice along one axis, counted from the front."""
    rank = len(x.shape)
    low, high, by = [0] * rank, list(x.shape), [1] * rank
    low[axis], high[axis], by[axis] = start, stop, step
    return slice(x, start=low, stop=high, step=by)


def pieces(x: Array, sizes: Sequence[int], axis: int) -> tuple[Array, ...]:
    """Split along an axis, counted from the front, into pieces of these sizes."""
    return tuple(narrow(x, axis, end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True))


def loop(
    body: Graph, carry: Sequence[Node], sequences: Sequence[Node], constants: Sequence[Node], length: int, reverse: bool
) -> Looped:
    """Scan with a body given as a graph; return the last carries and the stacked outputs."""
    counts = {"carries": len(carry), "sequences": len(sequences)}
    node = scan(*carry, *sequences, *constants, body=body, **counts, length=length, reverse=reverse)
    parts = results(node)
    return parts[: len(carry)], parts[len(carry) : len(body.outputs)]


def results(node: Node) -> tuple[Node, ...]:
    """Return all parts of a scan: last carries, stacked outputs, stacked incoming carries."""
    body, carries = node.attrs["body"], node.attrs["carries"]
    stacked = (*body.outputs[carries:], *body.inputs[:carries])
    shapes = [*(x.shape for x in body.outputs[:carries]), *((node.attrs["length"], *x.shape) for x in stacked)]
    kinds = (x.dtype for x in (*body.outputs[:carries], *stacked))
    return tuple(part(node, index=i, shape=s, dtype=d) for i, (s, d) in enumerate(zip(shapes, kinds, strict=True)))


def _power(g: Node, z: Node, x: Node, y: Node) -> tuple[Node, Node]:
    """Differentiate a power; both slopes of 0 to the power of 0 are 0."""
    if y.op == "constant":
        exponent = float(y.attrs["value"])
        slope = x ** (exponent - 1.0) * exponent if exponent else full(0.0, x.shape, x.dtype)
    else:
        slope = y * x ** where(equal(y, 0.0), 1.0, y - 1.0)
    return g * slope, g * z * log(where(equal(x, 0.0), 1.0, x))


def _won(g: Node, won: Node, x: Node, y: Node) -> Node:
    """Return the gradient where an operand is the chosen one, half of it where both are equal, else 0."""
    return where(won, g, where(equal(x, y), g * 0.5, 0.0))


def _shares(g: Node, z: Node, x: Node, axis: Shape) -> Node:
    """Split the gradient of a maximum evenly among all entries equal to it."""
    largest = equal(x, z)
    return where(largest, g / sum(cast(largest, dtype=x.dtype), axis=axis), 0.0)


def _undo_slice(g: Node, x: Node, start: Shape, step: Shape) -> Node:
    """Scatter the entries of a slice back to their places, among zeros."""
    sides = zip(x.shape, start, g.shape, step, strict=True)
    high = tuple(side - a - shapes.spread(count, by) for side, a, count, by in sides)
    return pad(g, low=start, high=high, interior=tuple(by - 1 for by in step), value=0.0)


def _undo_pad(g: Node, x: Node, low: Shape, interior: Shape) -> Node:
    """Read the entries of the operand from the padded array."""
    step = tuple(i + 1 for i in interior)
    stop = tuple(a + shapes.spread(side, by) for a, side, by in zip(low, x.shape, step, strict=True))
    return slice(g, start=low, stop=stop, step=step)


def _sigmoid(x: Node) -> Node:
    """Expand without overflow: the argument of the exponential is never positive."""
    small = exp(-abs(x))
    return where(x >= 0.0, 1.0, small) / (small + 1.0)


def _softmax(x: Node, *, axis: int) -> Node:
    powers = exp(x - max(x, axis=(axis,)))
    return powers / sum(powers, axis=(axis,))


def _log_softmax(x: Node, *, axis: int) -> Node:
    shifted = x - max(x, axis=(axis,))
    return shifted - log(sum(exp(shifted), axis=(axis,)))


def hot(labels: Array, classes: int) -> Array:
    """Return bool ``(*labels.shape, classes)``, true at each label."""
    rank: int = len(labels.shape)
    wide = reshape(labels, shape=(*labels.shape, 1))
    if not isinstance(labels, Node):
        return equal(wide, np.arange(classes))
    return equal(wide, iota(shape=(*(1,) * rank, classes), axis=rank, dtype=labels.dtype))


def _cross_entropy(logits: Node, labels: Node) -> Node:
    last = len(labels.shape)
    shifted = logits - max(logits, axis=(last,))
    chosen = sum(where(hot(labels, logits.shape[-1]), shifted, 0.0), axis=(last,))
    return reshape(log(sum(exp(shifted), axis=(last,))) - chosen, shape=labels.shape)


def _cross_entropy_flow(g: Node, logits: Node, labels: Node) -> Node:
    likely = softmax(logits, axis=len(labels.shape))
    return where(hot(labels, logits.shape[-1]), likely - 1.0, likely) * reshape(g, shape=(*labels.shape, 1))


def _layer_norm(x: Node, scale: Node, shift: Node, *, epsilon: float) -> Node:
    """Expand layer normalisation (Ba, Kiros and Hinton, arXiv:1607.06450)."""
    last, side = (len(x.shape) - 1,), float(x.shape[-1])
    centred = x - sum(x, axis=last) / side
    variance = sum(centred * centred, axis=last) / side
    return centred / sqrt(variance + epsilon) * scale + shift


def _keep_mask(shape: Shape, rate: Node, key: Sequence[Node], stream: int) -> Node:
    """Return which entries dropout keeps; the threshold is computed in float32 for every precision, and fits uint32."""
    threshold = minimum(cast(rate, dtype="float32") * 2.0**32, 2.0**32 - 256.0)
    return random_bits(*key, shape=shape, stream=stream) >= cast(threshold, dtype="uint32")


def _dropout(x: Node, rate: Node, *key: Node, stream: int) -> Node:
    """Expand inverted dropout."""
    return where(_keep_mask(x.shape, rate, key, stream), x * (1.0 / (1.0 - rate)), 0.0)


def _dropout_flow(g: Node, z: Node, x: Node, rate: Node, *key: Node, stream: int) -> tuple[Node | None, ...]:
    scale = 1.0 / (1.0 - rate)
    flow = where(_keep_mask(x.shape, rate, key, stream), g, 0.0)
    return flow * scale, flow * x * (scale * scale), *(None for _ in key)


def attention_weights(q: Node, k: Node, *mask: Node, causal: bool) -> Node:
    """Return the softmax of scaled products over the keys that a query attends to; weights of 0 if there are none."""
    scores = q @ swap_axes(k) * (1.0 / math.sqrt(q.shape[-1]))
    seen = _attention_mask(scores, mask, causal)
    if seen is None:
        return softmax(scores, axis=len(scores.shape) - 1)
    return where(seen, softmax(where(seen, scores, HIDDEN[scores.dtype]), axis=len(scores.shape) - 1), 0.0)


def _attention_mask(scores: Node, mask: Sequence[Node], causal: bool) -> Node | None:
    """Return whether queries attend to keys, bool and broadcast to the scores; None if all attend to all."""
    rank, sides = len(scores.shape), (*(1,) * (len(scores.shape) - 2), *scores.shape[-2:])
    rows, keys = (iota(shape=sides, axis=axis, dtype="int32") for axis in (rank - 2, rank - 1))
    return reduce(logical_and, [*mask, *([rows >= keys] if causal else [])]) if mask or causal else None


def _attention(q: Node, k: Node, v: Node, *mask: Node, causal: bool) -> Node:
    """Expand scaled dot-product attention (Vaswani et al., arXiv:1706.03762)."""
    return attention_weights(q, k, *mask, causal=causal) @ v


def _mixed_matmul(x: Node, y: Node, *, dtype: str) -> Node:
    """Expand a product that reads its operands in 16 bits, and adds in their own dtype."""
    return reduce_precision(x, dtype=dtype) @ reduce_precision(y, dtype=dtype)


def _attention_gradient(g: Node, q: Node, k: Node, v: Node, *mask: Node, causal: bool, of: int) -> Node:
    """Expand the gradient of attention with respect to its queries, keys or values."""
    weights = attention_weights(q, k, *mask, causal=causal)
    if of == 2:
        return swap_axes(weights) @ g
    flow = g @ swap_axes(v)
    seen = _attention_mask(flow, mask, causal)
    flow = flow if seen is None else where(seen, flow, 0.0)
    flow = weights * (flow - sum(weights * flow, axis=(len(flow.shape) - 1,))) * (1.0 / math.sqrt(q.shape[-1]))
    flow = flow if seen is None else where(seen, flow, 0.0)
    return swap_axes(flow) @ q if of else flow @ k


def _product_flow(g: Node, z: Node, x: Node, y: Node) -> tuple[Node, Node]:
    """Differentiate a product; of a matrix that all matrices of a batch are multiplied by, it is a single product."""
    flat = len(y.shape) < 3 <= len(x.shape)
    rows, flow = (reshape(a, shape=(math.prod(a.shape[:-1]), a.shape[-1])) if flat else a for a in (x, g))
    return g @ swap_axes(y), swap_axes(rows) @ flow


def _sort(x: Node, *, axis: int, descending: bool) -> Node:
    """Expand to the entries at the places of :func:`argsort`, so that gradients go back there."""
    places = argsort(x, axis=axis, descending=descending)
    outer, side, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    wide = "int64" if x.size > INTEGERS["int32"][-1] else "int32"
    rows, columns = (iota(shape=(outer, 1, 1), axis=0, dtype=wide), iota(shape=(1, 1, inner), axis=2, dtype=wide))
    flat = reshape(cast(places, dtype=wide), shape=(outer, side, inner)) * inner + (rows * (side * inner) + columns)
    return reshape(take(reshape(x, shape=(x.size,)), flat, axis=0), shape=x.shape)


def _prod(x: Node, *, axis: Shape) -> Node:
    """Expand by halves, whose gradients are right where factors are 0; a power of 2 is reached with ones."""
    for a in axis:
        width, none = 1 << builtins.max(x.shape[a] - 1, 0).bit_length(), (0,) * len(x.shape)
        high = tuple(width - x.shape[a] if i == a else 0 for i in range(len(x.shape)))
        x = pad(x, low=none, high=high, interior=none, value=1) if any(high) else x
        while width > 1:
            width //= 2
            x = narrow(x, a, 0, width) * narrow(x, a, width, 2 * width)
    return x


def without_attributes() -> list[Rules]:
    """Return the kernel's elementwise ops that take operands alone."""
    return [row for row in elementwise() if row.dtype not in (dtypes.attribute, dtypes.rounding)]


def select_ops(**facts: Any) -> frozenset[str]:
    """Return the names of the kernel's ops whose rows have all of these facts."""
    rows = (row for row in OPS.values() if ":" not in row.name)
    return frozenset(row.name for row in rows if all(getattr(row, fact) == value for fact, value in facts.items()))


def takes_indices(graph: Graph) -> bool:
    """Return whether an op of a graph, or of the body of a scan, takes indices, so that computing it may fail."""
    indexed = (x.op in OPS and OPS[x.op].indexed for x in graph)
    return any(indexed) or any(takes_indices(x.attrs["body"]) for x in graph if x.op == "scan")


def _no_operations(z: Node, *operands: Node, **_: Any) -> int:
    return 0


def _each_window(z: Node, x: Node, *, window: Shape, **_: Any) -> int:
    """Count one operation for each element of each window."""
    return z.size * math.prod(window)


def elementwise() -> list[Rules]:
    """Return the kernel's elementwise ops, in the order of the table."""
    return [row for row in OPS.values() if row.shape in shapes.ELEMENTWISE and ":" not in row.name]


# fmt: off
# -- arithmetic --------------------------------------------------------------------------------------------------------
add: Op = op("add", shapes.binary, dtypes.number, lambda g, z, x, y: (g, g),
             linear="whole", fold=operator.add, neutral=-0.0)
sub: Op = op("sub", shapes.binary, dtypes.number, lambda g, z, x, y: (g, -g),
             linear="whole", standard="subtract", fold=operator.sub, neutral=0.0)
mul: Op = op("mul", shapes.binary, dtypes.number, lambda g, z, x, y: (g * y, g * x),
             standard="multiply", fold=operator.mul, neutral=1.0)
div: Op = op("div", shapes.binary, dtypes.floating, lambda g, z, x, y: (g / y, -(g * z / y)),
             domain="positive", standard="divide", fold=operator.truediv, neutral=1.0)
pow: Op = op("pow", shapes.binary, dtypes.floating, _power, rounding="function", signed=False, domain="positive")
mod: Op = op("mod", shapes.binary, dtypes.number, lambda g, z, x, y: (g, -(g * floor(x / y))),
             domain="positive", standard="remainder")
maximum: Op = op("maximum", shapes.binary, dtypes.number,
                 lambda g, z, x, y: (_won(g, x > y, x, y), _won(g, y > x, x, y)),
                 linear="pieces", rounding="exact", signed=False)
minimum: Op = op("minimum", shapes.binary, dtypes.number,
                 lambda g, z, x, y: (_won(g, x < y, x, y), _won(g, y < x, x, y)),
                 linear="pieces", rounding="exact", signed=False)
neg: Op = op("neg", shapes.same, dtypes.number, lambda g, z, x: -g,
             linear="whole", rounding="exact", standard="negative", fold=operator.neg)
abs: Op = op("abs", shapes.same, dtypes.number, lambda g, z, x: g * sign(x), rounding="exact", fold=operator.abs)
sign: Op = op("sign", shapes.same, dtypes.number, rounding="exact", signed=False)
floor: Op = op("floor", shapes.same, dtypes.number, rounding="exact")

# -- elementwise -------------------------------------------------------------------------------------------------------
exp: Op = op("exp", shapes.same, dtypes.floating, lambda g, z, x: g * z, rounding="function")
expm1: Op = op("expm1", shapes.same, dtypes.floating, lambda g, z, x: g * (z + 1.0), rounding="function")
log: Op = op("log", shapes.same, dtypes.floating, lambda g, z, x: g / x, rounding="function", domain="positive")
log1p: Op = op("log1p", shapes.same, dtypes.floating, lambda g, z, x: g / (x + 1.0),
               rounding="function", domain="positive")
sqrt: Op = op("sqrt", shapes.same, dtypes.floating, lambda g, z, x: g / (2.0 * z), domain="positive", fold=math.sqrt)
sin: Op = op("sin", shapes.same, dtypes.floating, lambda g, z, x: g * cos(x), rounding="function")
cos: Op = op("cos", shapes.same, dtypes.floating, lambda g, z, x: -(g * sin(x)), rounding="function")
tanh: Op = op("tanh", shapes.same, dtypes.floating, lambda g, z, x: g * (1.0 - z * z), rounding="function")
erf: Op = op("erf", shapes.same, dtypes.floating, lambda g, z, x: g * (exp(-(x * x)) * (2.0 / math.sqrt(math.pi))),
             rounding="function")

# -- selection ---------------------------------------------------------------------------------------------------------
equal: Op = op("equal", shapes.binary, dtypes.compared, fold=operator.eq)
greater: Op = op("greater", shapes.binary, dtypes.ordered, fold=operator.gt)
greater_equal: Op = op("greater_equal", shapes.binary, dtypes.ordered, fold=operator.ge)
logical_and: Op = op("logical_and", shapes.binary, dtypes.logical)
logical_or: Op = op("logical_or", shapes.binary, dtypes.logical)
logical_not: Op = op("logical_not", shapes.same, dtypes.logical)
is_finite: Op = op("is_finite", shapes.same, dtypes.tested, standard="isfinite")
where: Op = op("where", shapes.ternary, dtypes.selection,
               lambda g, z, c, x, y: (None, where(c, g, 0.0), where(c, 0.0, g)), linear="pieces", rounding="exact")
stop: Op = op("stop", shapes.same, dtypes.same, view=True, linear="whole", operations=_no_operations)
barrier: Op = op("barrier", shapes.first_shape, dtypes.first_dtype, lambda g, z, x, gate: (g, None),
                 entries="apart", view=True, linear="whole", operations=_no_operations)
cast: Op = op("cast", shapes.same, dtypes.attribute, lambda g, z, x, *, dtype: cast(g, dtype=x.dtype),
              linear="whole", operations=_no_operations, fold=lambda x, dtype: x)
reduce_precision: Op = op("reduce_precision", shapes.same, dtypes.rounding, lambda g, z, x, *, dtype: g,
                          linear="pieces", operations=_no_operations)

# -- reductions (sides are kept) ---------------------------------------------------------------------------------------
sum: Op = op("sum", shapes.reduction, dtypes.number, lambda g, z, x, *, axis: stretch(g, shape=x.shape),
             entries="folded", linear="whole", operations=lambda z, x, axis: x.size)
max: Op = op("max", shapes.selection, dtypes.number, lambda g, z, x, *, axis: _shares(g, z, x, axis),
             entries="folded", linear="pieces", rounding="exact", operations=lambda z, x, axis: x.size)
argmax: Op = op("argmax", shapes.location, dtypes.place, entries="folded")

# -- orders and running sums -------------------------------------------------------------------------------------------
cumsum: Op = op("cumsum", shapes.accumulation, dtypes.number,
                lambda g, z, x, *, axis, reverse: cumsum(g, axis=axis, reverse=not reverse),
                entries="along", linear="whole", operations=lambda z, x, axis, reverse: x.size)
argsort: Op = op("argsort", shapes.order, dtypes.place, entries="along", rounding="exact")

# -- form --------------------------------------------------------------------------------------------------------------
reshape: Op = op("reshape", shapes.reshaping, dtypes.same, lambda g, z, x, *, shape: reshape(g, shape=x.shape),
                 entries="moved", view=True, linear="whole")
permute: Op = op("permute", shapes.permutation, dtypes.same,
                 lambda g, z, x, *, axes: permute(g, axes=sorted(range(len(axes)), key=axes.__getitem__)),
                 entries="moved", view=True, linear="whole")
stretch: Op = op("stretch", shapes.stretching, dtypes.same, lambda g, z, x, *, shape: g,
                 entries="apart", view=True, linear="whole")
slice: Op = op("slice", shapes.slicing, dtypes.same,
               lambda g, z, x, *, start, stop, step: _undo_slice(g, x, start, step),
               entries="moved", view=True, linear="whole")
pad: Op = op("pad", shapes.pad, dtypes.number,
             lambda g, z, x, *, low, high, interior, value: _undo_pad(g, x, low, interior), entries="moved")
concat: Op = op("concat", shapes.concatenation, dtypes.same,
                lambda g, z, *xs, axis: pieces(g, [x.shape[axis] for x in xs], axis), entries="moved", linear="whole")
array: Op = op("array", shapes.constant, dtypes.attribute)
iota: Op = op("iota", shapes.enumeration, dtypes.attribute, rounding="exact")

# -- gathering ---------------------------------------------------------------------------------------------------------
take: Op = op("take", shapes.indexing, dtypes.indexing,
              lambda g, z, x, i, *, axis: (scatter_add(full(0.0, x.shape, x.dtype), i, g, axis=axis), None),
              entries="gathered", indexed=True)
scatter_add: Op = op("scatter_add", shapes.scattering, dtypes.scattering,
                     lambda g, z, x, i, u, *, axis: (g, None, take(g, i, axis=axis)),
                     operations=lambda z, x, i, u, axis: u.size, indexed=True)

# -- linear maps -------------------------------------------------------------------------------------------------------
matmul: Op = op("matmul", shapes.product, dtypes.number, _product_flow,
                standard="matmul", operations=lambda z, x, y: 2 * z.size * x.shape[-1])
convolution: Op = op("convolution", shapes.convolution, dtypes.floating,
                     lambda g, z, x, w, **how: (convolution_input(g, w, shape=x.shape, **how),
                                                convolution_kernel(x, g, shape=w.shape, **how)),
                     operations=lambda z, x, w, **_: 2 * z.size * math.prod(w.shape[1:]))
convolution_input: Op = op("convolution_input", shapes.convolved_input, dtypes.floating,
                           lambda h, z, g, w, *, shape, **how: (convolution(h, w, **how),
                                                                convolution_kernel(h, g, shape=w.shape, **how)),
                           operations=lambda z, g, w, **_: 2 * g.size * math.prod(w.shape[1:]))
convolution_kernel: Op = op("convolution_kernel", shapes.convolved_kernel, dtypes.floating,
                            lambda h, z, x, g, *, shape, **how: (convolution_input(g, h, shape=x.shape, **how),
                                                                 convolution(x, h, **how)),
                            operations=lambda z, x, g, **_: 2 * g.size * math.prod(z.shape[1:]))

# -- pooling -----------------------------------------------------------------------------------------------------------
max_pool: Op = op("max_pool", shapes.pooling, dtypes.floating,
                  lambda g, z, x, **how: pool_scatter(g, pool_argmax(x, **how), shape=x.shape, **how),
                  entries="pooled", rounding="exact", operations=_each_window)
pool_argmax: Op = op("pool_argmax", shapes.pooling, dtypes.place, entries="pooled")
pool_select: Op = op("pool_select", shapes.pool_selected, dtypes.indexing,
                     lambda g, z, x, i, **how: (pool_scatter(g, i, shape=x.shape, **how), None),
                     entries="pooled", rounding="exact")
pool_scatter: Op = op("pool_scatter", shapes.unpooling, dtypes.indexing,
                      lambda h, z, g, i, *, shape, **how: (pool_select(h, i, **how), None), entries="pooled")
sum_pool: Op = op("sum_pool", shapes.pooling, dtypes.floating,
                  lambda g, z, x, **how: sum_unpool(g, shape=x.shape, **how), entries="pooled", operations=_each_window)
sum_unpool: Op = op("sum_unpool", shapes.unpooling, dtypes.floating,
                    lambda h, z, g, *, shape, **how: sum_pool(h, **how), entries="pooled")

# -- random bits and loops ---------------------------------------------------------------------------------------------
random_bits: Op = op("random_bits", shapes.random, dtypes.words)
scan: Op = op("scan", shapes.scan, dtypes.scan, rounding="exact")
part: Op = op("part", shapes.part, dtypes.part, rounding="exact")

# -- composites --------------------------------------------------------------------------------------------------------
relu: Op = op("relu", shapes.same, dtypes.number, lambda g, z, x: where(z > 0.0, g, 0.0), lambda x: maximum(x, 0),
              linear="pieces")
sigmoid: Op = op("sigmoid", shapes.same, dtypes.floating, lambda g, z, x: g * (z * (1.0 - z)), _sigmoid)
prod: Op = op("prod", shapes.reduction, dtypes.number, None, _prod, operations=lambda z, x, axis: x.size)
sort: Op = op("sort", shapes.order, dtypes.number, None, _sort, rounding="exact")
silu: Op = op("silu", shapes.same, dtypes.floating, None, lambda x: x * sigmoid(x))
gelu: Op = op("gelu", shapes.same, dtypes.floating, None, lambda x: x * (erf(x * math.sqrt(0.5)) + 1.0) * 0.5)
softplus: Op = op("softplus", shapes.same, dtypes.floating, lambda g, z, x: g * sigmoid(x),
                  lambda x: maximum(x, 0.0) + log1p(exp(-abs(x))))
softmax: Op = op("softmax", shapes.along_axis, dtypes.floating,
                 lambda g, z, x, *, axis: z * (g - sum(g * z, axis=(axis,))), _softmax, entries="along")
log_softmax: Op = op("log_softmax", shapes.along_axis, dtypes.floating,
                     lambda g, z, x, *, axis: g - exp(z) * sum(g, axis=(axis,)), _log_softmax, entries="along")
softmax_cross_entropy: Op = op("softmax_cross_entropy", shapes.classification, dtypes.classification,
                               lambda g, z, x, labels: (_cross_entropy_flow(g, x, labels), None), _cross_entropy)
layer_norm: Op = op("layer_norm", shapes.normalisation, dtypes.floating, None, _layer_norm)
dropout: Op = op("dropout", shapes.dropout, dtypes.dropout, _dropout_flow, _dropout, entries="apart", linear="pieces")
attention: Op = op("attention", shapes.attention, dtypes.attention,
                   lambda g, z, q, k, v, *mask, **how: (*(attention_gradient(g, q, k, v, *mask, **how, of=i)
                                                          for i in range(3)), *(None for _ in mask)), _attention)
attention_gradient: Op = op("attention_gradient", shapes.attended_back,
                            lambda g, *x, causal, of: dtypes.attention(*x, causal=causal), None, _attention_gradient)
mixed_matmul: Op = op("mixed_matmul", shapes.product, dtypes.rounding, None, _mixed_matmul)
