"""What a graph costs: floating-point operations, and the bytes that it must read and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from sigma_kernel.graph.node import BYTES, FLOATS, OPS, Graph, Node, expanded, symbol
from sigma_kernel.graph.shapes import ELEMENTWISE

_COUNTS: Mapping[str, Callable[[Node], int]] = {
    "matmul": lambda node: 2 * prod(node.shape) * node.inputs[0].shape[-1],
    "convolution": lambda node: 2 * prod(node.shape) * prod(node.inputs[1].shape[1:]),
    "convolution_input": lambda node: 2 * prod(node.inputs[0].shape) * prod(node.inputs[1].shape[1:]),
    "convolution_kernel": lambda node: 2 * prod(node.inputs[1].shape) * prod(node.shape[1:]),
    "sum": lambda node: prod(node.inputs[0].shape),
    "max": lambda node: prod(node.inputs[0].shape),
    "max_pool": lambda node: prod(node.shape) * prod(node.attrs["window"]),
    "sum_pool": lambda node: prod(node.shape) * prod(node.attrs["window"]),
    "scatter_add": lambda node: prod(node.inputs[2].shape),
    "scan": lambda node: node.attrs["length"] * operations(node.attrs["body"]),
}
_MOVES = ("stop", "cast", "reduce_precision")  # elementwise ops that compute nothing


def operations(graph: Graph) -> int:
    """Return the floating-point operations of a graph.

    A product of matrices ``(m, k)`` and ``(k, n)`` has ``2 * m * k * n``; elementwise ops, functions such as exp
    included, have one for each element, and reductions one for each element that they read. Moving data has none.
    """
    return sum(map(_operations, graph))


def _operations(node: Node) -> int:
    if node.op in _COUNTS:
        return _COUNTS[node.op](node) if node.op == "scan" or node.inputs[0].dtype in FLOATS else 0
    row = OPS.get(node.op)
    if row is not None and row.expansion is not None:
        symbols = tuple(symbol(x.shape, x.dtype) for x in node.inputs)
        value: Any = expanded(node, symbols)
        return operations(Graph(symbols, (value,)))
    floats = any(x.dtype in FLOATS for x in (node, *node.inputs))
    counted = row is not None and row.shape in ELEMENTWISE and node.op not in _MOVES
    return prod(node.shape) if counted and floats else 0


def traffic(graph: Graph) -> int:
    """Return the bytes of all inputs and outputs of a graph, which it must read and write at least."""
    return sum(prod(node.shape) * BYTES[node.dtype] for node in (*graph.inputs, *graph.outputs))
