"""An estimate of how long NumPy computes a graph, from the graph alone."""

from __future__ import annotations

from math import prod

from sigma_backend_numpy.kernels import LOWERINGS
from sigma_kernel.graph import BYTES, OPS, Graph, Node, rewrite

CALL = 1e-6  # seconds of a call of NumPy
BYTE = 1 / 10e9  # seconds of moving a byte
OPERATION = 1 / 30e9  # seconds of an operation of a product


def estimate_seconds(graph: Graph) -> float:
    """Return about how many seconds a graph takes: within a factor of 2 on one core of 2020 or later."""
    return sum(map(_estimate_node, rewrite(graph, keep=LOWERINGS)))


def _estimate_node(node: Node) -> float:
    if node.op == "scan":
        return int(node.attrs["length"]) * sum(map(_estimate_node, node.attrs["body"]))
    if not node.inputs:
        return 0.0
    row = OPS.get(node.op)
    counted = row.operations(node, *node.inputs, **node.attrs) if row and row.operations else 0
    moved = 0 if row and row.view else sum(_count_bytes(value) for value in (node, *node.inputs))
    return CALL + OPERATION * counted + BYTE * moved


def _count_bytes(node: Node) -> int:
    return prod(node.shape) * BYTES.get(node.dtype, 0)
