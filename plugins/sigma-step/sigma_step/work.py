"""The cost of a graph: floating-point operations, and the bytes that it must read and write."""

from __future__ import annotations

from math import prod
from typing import Any

from sigma_kernel.graph.node import BYTES, FLOATS, OPS, Graph, Node, expand_node, symbol
from sigma_kernel.graph.shapes import ELEMENTWISE


def operations(graph: Graph) -> int:
    """Return the floating-point operations of a graph.

    A product of matrices ``(m, k)`` and ``(k, n)`` has ``2 * m * k * n``; elementwise ops, functions such as exp
    included, have one for each element, and reductions one for each element that they read. Moving data has none.
    """
    return sum(map(count_operations, graph))


def count_operations(node: Node) -> int:
    """Return the floating-point operations of one node of a graph, as in :func:`operations`."""
    if node.op == "scan":
        return int(node.attrs["length"]) * operations(node.attrs["body"])
    row = OPS.get(node.op)
    if row is None:
        return 0
    if row.operations is not None:
        return row.operations(node, *node.inputs, **node.attrs) if node.inputs[0].dtype in FLOATS else 0
    if row.expansion is not None:
        symbols = tuple(symbol(x.shape, x.dtype) for x in node.inputs)
        value: Any = expand_node(node, symbols)
        return operations(Graph(symbols, (value,)))
    floats = any(x.dtype in FLOATS for x in (node, *node.inputs))
    return node.size if row.shape in ELEMENTWISE and floats else 0


def traffic(graph: Graph) -> int:
    """Return the bytes of all inputs and outputs of a graph, which it must read and write at least."""
    return sum(prod(node.shape) * BYTES[node.dtype] for node in (*graph.inputs, *graph.outputs))
