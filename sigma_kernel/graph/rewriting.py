"""Simplify graphs: expand composites, fold constants, merge equal nodes, drop unused ones.

All changes are exact on every backend: ``x * 1`` becomes ``x``, but ``x + 0.0`` does not, because it turns -0.0 into
0.0. The maximum of 0.0 and -0.0 may be either, and may change. Inputs remain the same nodes.
"""

from __future__ import annotations

import math
import operator
import struct
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from sigma_kernel.graph import ops, shapes
from sigma_kernel.graph.node import (
    FLOATS,
    INTEGERS,
    OPS,
    Graph,
    Node,
    constant,
    frozen_attrs,
    mark,
    originating,
    symbol,
    topological_order,
)

Change = Callable[[Node, tuple[Node, ...]], Node]  # a node and its new operands -> its replacement


def rewrite(graph: Graph, keep: Container[str] = ()) -> Graph:
    """Return a smaller graph with bitwise equal values; composites named in ``keep`` are not expanded.

    Rewriting before differentiation helps as well, since the gradient is then taken of the simpler graph.
    """
    with originating(""):
        return map_nodes(_pooled_first(graph), _sharing(keep), lambda body: rewrite(body, keep))


def map_nodes(graph: Graph, change: Change, change_body: Callable[[Graph], Graph]) -> Graph:
    """Return the graph with every node replaced, operands first; ``change_body`` replaces the bodies of scans."""

    def also_bodies(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "scan":
            node = evolve(node, attrs={**node.attrs, "body": change_body(node.attrs["body"])})
        return change(node, inputs)

    same = {x: x for x in graph.inputs}
    order = topological_order(graph.outputs, border=same) if any(x.inputs for x in same) else graph
    return Graph(graph.inputs, _rebuild_nodes(order, graph.outputs, same, also_bodies))


def close_graph(graph: Graph) -> tuple[Graph, tuple[Node, ...]]:
    """Return a graph that takes outside nodes as its last inputs, and these nodes.

    Arrays of constants and all that depends on no input of the graph are outside as well, so that a loop computes them
    once. Scalar constants, and nodes computed from scalars alone, remain.
    """
    own, free = set(graph.inputs), set[Node]()
    outside: dict[Node, Node] = {}
    for node in graph:
        if not own.isdisjoint(node.inputs):
            own.add(node)
            outside |= {x: symbol(x.shape, x.dtype) for x in node.inputs if x in free and x not in outside}
        elif (node.op in ("input", "array") and node not in own) or not free.isdisjoint(node.inputs):
            free.add(node)
    outside |= {x: symbol(x.shape, x.dtype) for x in graph.outputs if x in free and x not in outside}
    return Graph((*graph.inputs, *outside.values()), replace_nodes(graph.outputs, outside)), tuple(outside)


def replace_nodes(outputs: Sequence[Node], new: Mapping[Node, Node]) -> tuple[Node, ...]:
    """Return outputs that are computed from new nodes in place of others."""
    return _rebuild_nodes(topological_order(outputs, border=new), outputs, dict(new), with_inputs)


def _rebuild_nodes(
    order: Iterable[Node], outputs: Sequence[Node], new: dict[Node, Node], change: Change
) -> tuple[Node, ...]:
    """Replace the nodes that are not in ``new``, operands first, and return the new outputs."""
    for node in order:
        if node not in new:
            new[node] = change(node, tuple([new[x] for x in node.inputs]))
    return tuple([new[node] for node in outputs])


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Return the node itself if these are its operands, else a copy of it that takes them."""
    if all(map(operator.is_, inputs, node.inputs)):
        return node
    return Node(node.op, inputs, node.attrs, node.shape, node.dtype, origin=node.origin)


def _sharing(keep: Container[str]) -> Change:
    """Return a change that expands composites, simplifies nodes and merges equal ones."""
    table: dict[Any, Node] = {}

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        mark(node.origin)
        row = OPS.get(node.op)
        if row and row.expansion and node.op not in keep:
            expansion = row.expansion(*inputs, **node.attrs)
            same = {x: x for x in inputs}
            return _rebuild_nodes(topological_order((expansion,), border=same), (expansion,), same, change)[0]
        node = node if node.op == "input" else _simplify(with_inputs(node, inputs))
        if node.op == "input":  # two inputs are never the same
            return node
        key = (node.op, tuple(map(id, node.inputs)), frozen_attrs(node.attrs), node.shape, node.dtype)
        return table.setdefault(key, node)

    return change


def _simplify(node: Node) -> Node:
    """Apply rules until none applies."""
    while (better := _rule(node)) is not node:
        node = better
    return node


def _rule(node: Node) -> Node:
    row = OPS.get(node.op)
    if row and row.fold and {x.op for x in node.inputs} == {"constant"}:
        return _fold(node, row.fold)
    if node.op in _BROADCASTING:
        node = _drop_stretches(node)
    if node.op in _RESHAPING and [(x.shape, x.dtype) for x in node.inputs] == [(node.shape, node.dtype)]:
        return node.inputs[0]
    if row and row.neutral is not None:
        return _without_neutral(node, row.neutral)
    return _RULES[node.op](node) if node.op in _RULES else node


# -- constants ---------------------------------------------------------------------------------------------------------
def _fold(node: Node, fold: Callable[..., Any]) -> Node:
    """Compute a scalar op if double precision, rounded once, equals the result of every backend."""
    try:
        values = (_round_number(x.attrs["value"], x.dtype) for x in node.inputs)
        return constant(_round_number(fold(*values, **node.attrs), node.dtype), node.dtype)
    except (ArithmeticError, ValueError):  # division by zero, overflow, root of a negative number: left to the backend
        return node


def _round_number(value: Any, dtype: str) -> Any:
    """Round a number to its dtype; raise if double rounding could change the result."""
    if dtype in ("float16", "float32", "float64"):
        if isinstance(value, int) and abs(value) > 2**53:
            raise OverflowError
        code = {"float16": "<e", "float32": "<f", "float64": "<d"}[dtype]
        return struct.unpack(code, struct.pack(code, value))[0]
    whole = int(value)
    if dtype == "bfloat16" or (dtype in INTEGERS and whole not in INTEGERS[dtype]):
        raise OverflowError
    return bool(value) if dtype == "bool" else whole


# -- algebra -----------------------------------------------------------------------------------------------------------
_BROADCASTING = {row.name for row in ops.elementwise() if row.shape is not shapes.same}
_STRETCHING = {"reshape", "stretch"}
_RESHAPING = {"cast", "max", "slice", "pad", "concat", "reshape", "stretch"}  # may do nothing


def _drop_stretches(node: Node) -> Node:
    """Drop stretches of operands that the op's own broadcasting makes superfluous."""
    if _STRETCHING.isdisjoint([x.op for x in node.inputs]):
        return node
    inputs = list(node.inputs)
    for i, x in enumerate(inputs):
        if not _stretches(x):
            continue
        others = [y.shape for k, y in enumerate(inputs) if k != i]
        while _stretches(x) and shapes.broadcast(x.inputs[0].shape, *others) == node.shape:
            inputs[i] = x = x.inputs[0]
    return with_inputs(node, tuple(inputs))


def _stretches(node: Node) -> bool:
    """Return whether a node stretches its operand; a reshape that prepends sides of 1 does."""
    if node.op != "reshape":
        return node.op == "stretch"
    shape = node.inputs[0].shape
    return node.shape == (1,) * (len(node.shape) - len(shape)) + shape


def _without_neutral(node: Node, neutral: float) -> Node:
    """Drop a neutral operand."""
    x, y = node.inputs
    pairs = [(x, y), (y, x)] if node.op in ("add", "mul") else [(x, y)]
    return next((a for a, b in pairs if _is(b, neutral)), node)


def _is(node: Node, value: float) -> bool:
    """Return whether a node is this constant; float zeros have signs."""
    if node.op != "constant" or node.attrs["value"] != value:
        return False
    return node.dtype not in FLOATS or math.copysign(1.0, node.attrs["value"]) == math.copysign(1.0, value)


def _twice(node: Node) -> Node:
    """Drop an op that is applied twice and is its own inverse."""
    inner = node.inputs[0]
    return inner.inputs[0] if inner.op == node.op else node


def _choice(node: Node) -> Node:
    _, x, y = node.inputs
    return x if x is y and x.shape == node.shape else node


def _reshape(node: Node) -> Node:
    """Merge two reshapes; a reshape of a stretched scalar is a stretch."""
    x = node.inputs[0]
    if x.op == "stretch" and x.inputs[0].shape == ():
        return evolve(node, op="stretch", inputs=x.inputs)
    return evolve(node, inputs=x.inputs) if x.op == "reshape" else node


def _stretch(node: Node) -> Node:
    """Merge two stretches."""
    x = node.inputs[0]
    return evolve(node, inputs=x.inputs) if _stretches(x) else node


def _permute(node: Node) -> Node:
    x, axes = node.inputs[0], node.attrs["axes"]
    if axes == tuple(range(len(axes))):
        return x
    if x.op != "permute":
        return node
    return evolve(node, inputs=x.inputs, attrs={"axes": tuple(x.attrs["axes"][a] for a in axes)})


_RULES: dict[str, Callable[[Node], Node]] = {
    **dict.fromkeys(("neg", "logical_not"), _twice),
    "where": _choice, "permute": _permute, "reshape": _reshape, "stretch": _stretch,
}  # fmt: skip


def _pooled_first(graph: Graph) -> Graph:
    """Swap max_pool and a relu that nothing else reads: the maximum of rectified entries is the rectified maximum."""
    if all(node.op != "max_pool" for node in graph):
        return graph
    uses = Counter(x for node in graph for x in node.inputs) + Counter(graph.outputs)

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        mark(node.origin)
        if node.op == "max_pool" and node.inputs[0].op == "relu" and uses[node.inputs[0]] == 1:
            return ops.relu(ops.max_pool(inputs[0].inputs[0], **node.attrs))
        return with_inputs(node, inputs)

    return map_nodes(graph, change, lambda body: body)
