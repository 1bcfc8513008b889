"""Lower barriers: values that are computed again in the backward pass wait for a gradient (see ``recompute``).

A barrier becomes ``later``, an elementwise op: each element of a value waits for the first one of another. Nests then
read the value where they need it, without a copy, and the order of the groups follows from what they read.

Sums and maxima of rows are not computed again: they are small, and their order of additions depends on the loop
around them.
"""

from __future__ import annotations

from typing import Any

from sigma_kernel.graph import Graph, Node, frozen_attrs, map_nodes, ops, select_ops, with_inputs

FOLDS = select_ops(entries="folded")
SMALLER = 8  # times that a kept result is smaller than its operand, at least


def lower_barriers(graph: Graph) -> Graph:
    """Return a graph without barriers, in the bodies of scans as well."""
    if not _has_barriers(graph):
        return graph
    kept = _find_originals(graph)

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node in kept:
            return kept[node]
        return _wait(node, *inputs) if node.op == "barrier" else with_inputs(node, inputs)

    return map_nodes(graph, change, lower_barriers)


def _has_barriers(graph: Graph) -> bool:
    return any(x.op == "barrier" or (x.op == "scan" and _has_barriers(x.attrs["body"])) for x in graph)


def _wait(node: Node, x: Node, gate: Node) -> Node:
    if 0 in gate.shape:
        return x
    ones = (1,) * gate.ndim
    first = ops.reshape(ops.slice(gate, start=(0,) * gate.ndim, stop=ones, step=ones), shape=())
    return Node("later", (x, first), {}, x.shape, x.dtype)


def _find_originals(graph: Graph) -> dict[Node, Node]:
    """Return the reductions of rows behind barriers, with the equal ones of the forward pass."""
    behind = set[Node]()
    for node in graph:
        if node.op == "barrier" or not behind.isdisjoint(node.inputs):
            behind.add(node)
    open_ = [node for node in graph if node not in behind]
    plain = {node: node for node in open_}  # each node without the barriers before it
    table = {_key(node, node.inputs): node for node in open_ if node.op != "input"}
    for node in (node for node in graph if node in behind):
        inputs = tuple(plain[x] for x in node.inputs)
        passed = node.op == "barrier"
        plain[node] = inputs[0] if passed else table.setdefault(_key(node, inputs), with_inputs(node, inputs))
    originals = {*open_}
    return {node: plain[node] for node in behind if _reduces_rows(node) and plain[node] in originals}


def _key(node: Node, inputs: tuple[Node, ...]) -> tuple[Any, ...]:
    return node.op, tuple(map(id, inputs)), frozen_attrs(node.attrs), node.shape, node.dtype


def _reduces_rows(node: Node) -> bool:
    """Return whether a node reduces much within rows of the batch."""
    if node.op not in FOLDS or node.size * SMALLER > node.inputs[0].size:
        return False
    axis = node.attrs["axis"]  # one of an argmax, several of others
    return 0 not in (axis if isinstance(axis, tuple) else (axis,))
