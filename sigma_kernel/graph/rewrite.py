"""Graphs that say the same with fewer nodes: composites expanded, constants folded, equal nodes shared, dead ones gone.

Only what is exact on every backend is done.  ``x * 1`` is ``x``; ``x + 0.0`` is not, because it turns -0.0 into 0.0.
Which zero is the larger of 0.0 and -0.0 is not defined, and not kept.  Inputs stay the nodes that they are.
"""

from __future__ import annotations

import math
import operator
import struct
from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import Any

from attrs import evolve

from sigma_kernel.graph import ops, shapes
from sigma_kernel.graph.node import FLOATS, INTEGERS, OPS, Graph, Node, constant, frozen_attrs, ordered

Change = Callable[[Node, tuple[Node, ...]], Node]  # a node and its changed operands -> what stands for it


def rewrite(graph: Graph, keep: Container[str] = ()) -> Graph:
    """Return a smaller graph with the same values to the bit; composites named in ``keep`` stay whole.

    Do it before a gradient is taken too: the gradient inherits what was simplified.
    """
    graph = expand(_pooled_first(graph), keep)
    return changed(graph, _sharing(), lambda body: rewrite(body, keep))


def expand(graph: Graph, keep: Container[str] = ()) -> Graph:
    """Return the graph with composites expanded into primitives, except those named in ``keep``."""

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        expansion = OPS[node.op].expansion if node.op in OPS and node.op not in keep else None
        if expansion is None:
            return _with(node, inputs)
        return _carried((expansion(*inputs, **node.attrs),), {x: x for x in inputs}, change)[0]

    return changed(graph, change, lambda body: expand(body, keep))


def changed(graph: Graph, change: Change, change_body: Callable[[Graph], Graph]) -> Graph:
    """Return the graph with every node changed, operands first; ``change_body`` is applied to the bodies of scans."""

    def also_bodies(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "scan":
            node = evolve(node, attrs={**node.attrs, "body": change_body(node.attrs["body"])})
        return change(node, inputs)

    return Graph(graph.inputs, _carried(graph.outputs, {x: x for x in graph.inputs}, also_bodies))


def _carried(outputs: Sequence[Node], known: dict[Node, Node], change: Change) -> tuple[Node, ...]:
    """Change what the outputs need and is not known yet."""
    for node in ordered(outputs, border=frozenset(known)):
        if node not in known:
            known[node] = change(node, tuple(known[x] for x in node.inputs))
    return tuple(known[node] for node in outputs)


def _with(node: Node, inputs: tuple[Node, ...]) -> Node:
    return node if inputs == node.inputs else evolve(node, inputs=inputs)


def _sharing() -> Change:
    """Return a change that simplifies nodes and makes equal ones the same."""
    table: dict[Any, Node] = {}

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        node = node if node.op == "input" else _simplified(_with(node, inputs))
        if node.op == "input":  # two inputs are never the same
            return node
        key = (node.op, node.inputs, frozen_attrs(node.attrs), node.shape, node.dtype)
        return table.setdefault(key, node)

    return change


def _simplified(node: Node) -> Node:
    """Apply rules until none does anything."""
    while (better := _rule(node)) is not node:
        node = better
    return node


def _rule(node: Node) -> Node:
    if node.op in _FOLDS and node.inputs and all(x.op == "constant" for x in node.inputs):
        return _folded(node)
    if node.op in _BROADCASTING:
        node = _unstretched(node)
    return _RULES[node.op](node) if node.op in _RULES else node


# -- constants ---------------------------------------------------------------------------------------------------------
_FOLDS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "abs": operator.abs, "sqrt": math.sqrt, "equal": operator.eq, "greater": operator.gt,
    "greater_equal": operator.ge, "cast": lambda x, dtype: x,
}  # fmt: skip


def _folded(node: Node) -> Node:
    """Compute a scalar where double precision, rounded once more, is what a backend gets too."""
    try:
        values = (_rounded(x.attrs["value"], x.dtype) for x in node.inputs)
        return constant(_rounded(_FOLDS[node.op](*values, **node.attrs), node.dtype), node.dtype)
    except (ArithmeticError, ValueError):  # division by zero, overflow, the root of a negative number: left to the run
        return node


def _rounded(value: Any, dtype: str) -> Any:
    """Return a number as its dtype holds it, or raise where the rule of rounding twice does not hold."""
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
_NEUTRAL = {"add": -0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}


def _unstretched(node: Node) -> Node:
    """Read operands as they were before a stretch that the op itself would do."""
    inputs = list(node.inputs)
    for i, x in enumerate(inputs):
        others = [y.shape for k, y in enumerate(inputs) if k != i]
        while _stretches(x) and shapes.broadcast(x.inputs[0].shape, *others) == node.shape:
            inputs[i] = x = x.inputs[0]
    return _with(node, tuple(inputs))


def _stretches(node: Node) -> bool:
    """Say whether a node stretches its operand; to put sides of one in front is to stretch, too."""
    if node.op != "reshape":
        return node.op == "stretch"
    shape = node.inputs[0].shape
    return node.shape == (1,) * (len(node.shape) - len(shape)) + shape


def _neutral(node: Node) -> Node:
    """Drop a number that changes nothing."""
    x, y = node.inputs
    pairs = [(x, y), (y, x)] if node.op in ("add", "mul") else [(x, y)]
    return next((a for a, b in pairs if _is(b, _NEUTRAL[node.op])), node)


def _is(node: Node, value: float) -> bool:
    """Say whether a node is this number; zeros of floats have signs."""
    if node.op != "constant" or node.attrs["value"] != value:
        return False
    return node.dtype not in FLOATS or math.copysign(1.0, node.attrs["value"]) == math.copysign(1.0, value)


def _twice(node: Node) -> Node:
    """Drop an op that undoes itself."""
    inner = node.inputs[0]
    return inner.inputs[0] if inner.op == node.op else node


def _choice(node: Node) -> Node:
    _, x, y = node.inputs
    return x if x is y and x.shape == node.shape else node


def _reshape(node: Node) -> Node:
    """Drop a reshape that keeps the shape, and one below another; one of a number everywhere is a stretch."""
    x = node.inputs[0]
    if x.shape == node.shape:
        return x
    if x.op == "stretch" and x.inputs[0].shape == ():
        return evolve(node, op="stretch", inputs=x.inputs)
    return evolve(node, inputs=x.inputs) if x.op == "reshape" else node


def _stretch(node: Node) -> Node:
    """Drop a stretch that keeps the shape, and one below another."""
    x = node.inputs[0]
    if x.shape == node.shape:
        return x
    return evolve(node, inputs=x.inputs) if _stretches(x) else node


def _permute(node: Node) -> Node:
    x, axes = node.inputs[0], node.attrs["axes"]
    if axes == tuple(range(len(axes))):
        return x
    if x.op != "permute":
        return node
    return evolve(node, inputs=x.inputs, attrs={"axes": tuple(x.attrs["axes"][a] for a in axes)})


def _unchanged(node: Node) -> Node:
    """Drop an op that reads every entry in its place, as the only operand, into the same shape and dtype."""
    x = node.inputs[0]
    return x if len(node.inputs) == 1 and (x.shape, x.dtype) == (node.shape, node.dtype) else node


_RULES: dict[str, Callable[[Node], Node]] = {
    **dict.fromkeys(_NEUTRAL, _neutral), **dict.fromkeys(("neg", "logical_not"), _twice),
    **dict.fromkeys(("cast", "max", "slice", "pad", "concat"), _unchanged),
    "where": _choice, "permute": _permute, "reshape": _reshape, "stretch": _stretch,
}  # fmt: skip


def _pooled_first(graph: Graph) -> Graph:
    """Pool before a rectifier that nothing else reads: the largest of rectified entries is the rectified largest."""
    uses = Counter(x for node in graph for x in node.inputs) + Counter(graph.outputs)

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "max_pool" and node.inputs[0].op == "relu" and uses[node.inputs[0]] == 1:
            return ops.relu(ops.max_pool(inputs[0].inputs[0], **node.attrs))
        return _with(node, inputs)

    return changed(graph, change, lambda body: body)
