"""Fuse ops into functions of PyTorch: one call for a few ops, in fewer passes over memory.

The nodes made here have ops named ``torch:...``, whose meanings are in :mod:`sigma_backend_torch.namespace`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import evolve

from sigma_kernel.graph import Graph, Node, map_nodes, with_inputs

Uses = Mapping[Node, int]
Pattern = Callable[[Node, tuple[Node, ...], Uses], Node | None]  # a node, its new operands, the uses of old ones
LARGE = 4096  # entries from which a choice between random values is worth two calls
FLOATS = ("float32", "float64")


def fuse_patterns(graph: Graph) -> Graph:
    """Return the graph with calls of PyTorch's in place of patterns, in the bodies of scans as well."""
    uses = Counter(x for node in graph for x in node.inputs) + Counter(graph.outputs)
    placed, pairs = _find_places(graph), dict[Any, Node]()
    pooled = {(x.inputs[0], repr(sorted(x.attrs.items()))) for x in placed}

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        key = (node.inputs[0], repr(sorted(node.attrs.items()))) if node.op == "max_pool" else None
        if node in placed or key in pooled or (node.op == "pool_scatter" and node.inputs[1] in placed):
            return _pool(node, inputs, pairs)
        for pattern in PATTERNS.get(node.op, ()):
            if (better := pattern(node, inputs, uses)) is not None:
                return better
        return with_inputs(node, inputs)

    return map_nodes(graph, change, fuse_patterns)


def _make_node(op: str, node: Node, *inputs: Node, **attrs: Any) -> Node:
    return evolve(node, op=f"torch:{op}", inputs=inputs, attrs=attrs)


def _operands(
    node: Node, inputs: tuple[Node, ...], uses: Uses, *ops: str, both: bool = True
) -> Iterator[tuple[Node, Node]]:
    """Yield operands of a binary node that are results of some ops, used by it alone, each with the other operand."""
    for i in (0, 1) if both else (1,):
        if node.dtype in FLOATS and inputs[i].op in ops and uses[node.inputs[i]] == 1:
            yield inputs[i], inputs[1 - i]


# -- sums --------------------------------------------------------------------------------------------------------------
def _product_and_sum(node: Node, inputs: tuple[Node, ...], uses: Uses) -> Node | None:
    """Add to a product of matrices: the biases of a layer, or the sums of a recurrent layer's inputs."""
    for product, other in _operands(node, inputs, uses, "matmul"):
        x, w = product.inputs
        biases = other.shape == w.shape[-1:] or (len(x.shape) == 2 and other.shape == node.shape)
        if len(w.shape) == 2 <= len(x.shape) and product.shape == node.shape and biases and all(x.shape):
            return _make_node("addmm", node, other, x, w)
    return None


def _step(node: Node, inputs: tuple[Node, ...], uses: Uses) -> Node | None:
    """Add a product or a quotient, or subtract it, as the updates of optimisers do."""
    sign = 1 if node.op == "add" else -1
    for term, other in _operands(node, inputs, uses, "mul", "div", both=sign > 0):
        if node.shape == term.shape == other.shape and node.shape:
            return _make_node("addcmul" if term.op == "mul" else "addcdiv", node, other, *term.inputs, value=sign)
    return None


def _join_padded(node: Node, inputs: tuple[Node, ...], uses: Uses) -> Node | None:
    """Join two pieces that are padded with zeros and added, one after the other along an axis."""
    pieces = (_is_piece(x) and uses[old] == 1 for x, old in zip(inputs, node.inputs, strict=True))
    if not all(pieces) or any(x.shape != node.shape for x in inputs):
        return None
    axes = {i for x in inputs for i, ends in enumerate(zip(*_ends(x), strict=True)) if any(ends)}
    if len(axes) != 1:
        return None
    (axis,) = axes
    first, last = sorted(inputs, key=lambda x: int(x.attrs["low"][axis]))
    (low, _), (_, high) = _ends(first), _ends(last)
    parts = [x for piece in (first, last) for x in _parts(piece.inputs[0], axis)]
    side = sum(x.shape[axis] for x in parts)
    if low[axis] + first.inputs[0].shape[axis] != last.attrs["low"][axis]:
        return None
    shape = (*node.shape[:axis], side, *node.shape[axis + 1 :])
    joined = evolve(node, op="concat", inputs=tuple(parts), attrs={"axis": axis}, shape=shape)
    room = {**first.attrs, "low": low, "high": high}
    return joined if shape == node.shape else evolve(node, op="pad", inputs=(joined,), attrs=room)


def _is_piece(x: Node) -> bool:
    return x.op == "pad" and x.attrs["value"] == 0 and not any(x.attrs["interior"]) and all(x.shape)


def _ends(pad: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(pad.attrs["low"]), tuple(pad.attrs["high"])


def _parts(x: Node, axis: int) -> tuple[Node, ...]:
    return x.inputs if x.op == "concat" and x.attrs["axis"] == axis else (x,)


def _total(node: Node, inputs: tuple[Node, ...], uses: Uses) -> Node | None:
    """Sum without the sides of 1 that a reshape drops."""
    (x,) = inputs
    if x.op != "sum" or uses[node.inputs[0]] > 1 or node.dtype not in FLOATS or not x.attrs["axis"]:
        return None
    left = tuple(side for axis, side in enumerate(x.shape) if axis not in x.attrs["axis"])
    return _make_node("total", node, *x.inputs, axis=tuple(x.attrs["axis"])) if node.shape == left else None


# -- slopes of activation functions ------------------------------------------------------------------------------------
def _slope(node: Node, inputs: tuple[Node, ...], uses: Uses) -> Node | None:
    """Multiply by the slope of tanh, ``1 - z * z``, or of the logistic function, ``z * (1 - z)``."""
    for slope, g in _operands(node, inputs, uses, "sub", "mul"):
        z = _of_tanh(slope) if slope.op == "sub" else _of_logistic(slope)
        if z is not None and g.shape == z.shape == node.shape:
            return _make_node("tanh_slope" if slope.op == "sub" else "logistic_slope", node, g, z)
    return None


def _of_tanh(slope: Node) -> Node | None:
    unit, square = slope.inputs
    same = square.op == "mul" and square.inputs[0] is square.inputs[1]
    return square.inputs[0] if same and _is(unit, 1.0) else None


def _of_logistic(slope: Node) -> Node | None:
    pairs = (slope.inputs, slope.inputs[::-1])
    return next((z for z, x in pairs if x.op == "sub" and x.inputs[1] is z and _is(x.inputs[0], 1.0)), None)


def _is(x: Node, value: float) -> bool:
    return x.op == "constant" and x.attrs["value"] == value


def _rectify(node: Node, inputs: tuple[Node, ...], uses: Uses) -> Node | None:
    """Pass a gradient on where a relu is positive."""
    condition, g, zero = inputs
    if condition.op != "greater" or not (_is(zero, 0.0) and _is(condition.inputs[1], 0.0)):
        return None
    z = condition.inputs[0]
    fits = z.op == "relu" and z.dtype in FLOATS and z.shape == g.shape == node.shape
    return _make_node("rectified", node, g, z) if fits else None


def _select_or_zero(node: Node, inputs: tuple[Node, ...], uses: Uses) -> Node | None:
    """Choose between values and 0; PyTorch's own choice takes ten times as long where the condition is random."""
    condition, x, zero = inputs
    large = node.dtype in FLOATS and condition.shape == x.shape == node.shape and _size(node) >= LARGE
    return _make_node("kept", node, condition, x) if large and _is(zero, 0.0) else None


def _size(x: Node) -> int:
    size = 1
    for side in x.shape:
        size *= side
    return size


# -- pooling -----------------------------------------------------------------------------------------------------------
def _find_places(graph: Graph) -> set[Node]:
    """Return the places of maxima that nothing reads but what distributes gradients to them."""
    readers: dict[Node, list[Node]] = {}
    for node in graph:
        for x in node.inputs:
            readers.setdefault(x, []).append(node)
    kept = {*graph.outputs}
    nodes = {x for x in graph if x.op == "pool_argmax" and len(x.shape) in (3, 4, 5) and x not in kept}
    return {x for x in nodes if all(x.shape) and all(_distributes(y, x) for y in readers.get(x, ()))}


def _distributes(node: Node, places: Node) -> bool:
    how = {name: value for name, value in node.attrs.items() if name != "shape"}
    return node.op == "pool_scatter" and node.inputs[1] is places and how == dict(places.attrs)


def _pool(node: Node, inputs: tuple[Node, ...], pairs: dict[Any, Node]) -> Node:
    """Return maxima or their places, which PyTorch computes at once, or what distributes a gradient to them."""
    if node.op == "pool_scatter":
        return _make_node("pool_back", node, *inputs, **node.attrs)
    key = (inputs[0], repr(sorted(node.attrs.items())))
    pair = pairs.setdefault(key, evolve(node, op="torch:pool", inputs=inputs))
    return _make_node("part", node, pair, index=int(node.op == "pool_argmax"))


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "add": (_product_and_sum, _step, _join_padded), "sub": (_step,), "mul": (_slope,), "reshape": (_total,),
    "where": (_rectify, _select_or_zero),
}  # fmt: skip
