"""The estimate of how long NumPy computes a graph: calls, products and moved bytes add up, in scans too."""

from __future__ import annotations

import pytest

from sigma_backend_numpy import NumpyBackend
from sigma_backend_numpy.duration import BYTE, CALL, OPERATION
from sigma_kernel.graph import Graph, Node, symbol


def estimate(*outputs: Node) -> float:
    inputs = [node for node in Graph((), outputs) if node.op == "input"]
    compiled, seconds = NumpyBackend().estimate(Graph(tuple(inputs), outputs))
    assert compiled == 0.0
    return seconds


def test_a_product_takes_its_call_its_operations_and_the_bytes_that_it_moves() -> None:
    product = symbol((100, 200)) @ symbol((200, 300))
    moved = 4 * (100 * 200 + 200 * 300 + 100 * 300)
    assert estimate(product) == pytest.approx(CALL + OPERATION * 2 * 100 * 200 * 300 + BYTE * moved)


def test_views_take_no_more_than_their_call() -> None:
    assert estimate(symbol((100, 200)).reshape((200, 100))) == pytest.approx(CALL)


def test_inputs_alone_take_no_time() -> None:
    assert estimate(symbol((100, 200))) == 0.0
