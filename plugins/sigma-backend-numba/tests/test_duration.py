"""The estimate of how long a graph is compiled: it grows with nodes, and with products of different shapes."""

from __future__ import annotations

import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.duration import KERNEL, LEAST, NODE
from sigma_kernel.graph import Graph, Node, symbol


def estimate(*outputs: Node) -> float:
    inputs = tuple(node for node in Graph((), outputs) if node.op == "input")
    return NumbaBackend().estimate(Graph(inputs, outputs))[0]


def test_every_node_takes_time_and_a_product_takes_more() -> None:
    x = symbol((4, 4))
    assert estimate(x + x) == pytest.approx(LEAST + 2 * NODE)
    assert estimate(x @ x) == pytest.approx(LEAST + 2 * NODE + KERNEL)


def test_products_of_the_same_shapes_are_compiled_once() -> None:
    x, y = symbol((4, 4)), symbol((4, 5))
    assert estimate((x @ x) @ x) == pytest.approx(LEAST + 3 * NODE + KERNEL)
    assert estimate((x @ x) @ y) == pytest.approx(LEAST + 4 * NODE + 2 * KERNEL)
