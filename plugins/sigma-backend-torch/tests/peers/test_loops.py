"""Scans that write the rows of their stacks, against the reference: what leaves, what arrives, and where they meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sigma_backend_numpy import NumpyBackend
from sigma_backend_torch import TorchBackend
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, constant, gradient, symbol

Body = Callable[[Node, Node, Node, Node], Any]
DRAW = np.random.default_rng(2)


def agree(graph: Graph) -> None:
    arrays = [DRAW.normal(size=x.shape) for x in graph.inputs]
    found, wanted = (
        [backend.to_host(x) for x in backend.lower(graph, {})(*map(backend.to_device, arrays))]
        for backend in (TorchBackend(), NumpyBackend())
    )
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


def gates(h: Node, c: Node, x: Node, w: Node) -> Any:
    z = f.concat(x, h, axis=1) @ w
    new = f.sigmoid(z) * c + f.tanh(x)
    return [f.tanh(new), new], [z, f.tanh(new)]


BODIES: dict[str, Body] = {
    "gates": gates,
    "passed on": lambda h, c, x, w: ([c, h], [x, h]),
    "one value as two carries": lambda h, c, x, w: ([y := h * x, y], [y]),
    "a carry that stays": lambda h, c, x, w: ([h, c + x], [h, c]),
    "a constant": lambda h, c, x, w: ([h * 0.5, c * 0.0 + 1.0], [f.iota(shape=(2, 3), axis=1, dtype="float64") + h]),
    "a number": lambda h, c, x, w: ([h, c], [f.sqrt(constant(2.0, "float64"))]),
    "what depends on nothing": lambda h, c, x, w: ([h, c], [f.tanh(f.iota(shape=(2, 3), axis=1, dtype="float64"))]),
    "a view of a result": lambda h, c, x, w: ([h + x, c * x], [f.permute(h + x, axes=(1, 0)), c * x]),
    "whole numbers": lambda h, c, x, w: ([h - x, c], [f.cast(h * 9.0, dtype="int32"), f.cast(h > x, dtype="uint32")]),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
@pytest.mark.parametrize("name", BODIES)
def test_a_loop_has_the_carries_and_the_outputs_of_the_reference(name: str, length: int, reverse: bool) -> None:
    h, c, x, w = inputs = [symbol(shape, "float64") for shape in ((2, 3), (2, 3), (length, 2, 3), (6, 3))]
    last, outputs = f.scan(BODIES[name], [h, c], [x], [w], reverse=reverse)
    agree(Graph(tuple(inputs), (*last, *outputs)))
    agree(Graph(tuple(inputs), (*outputs, last[0] * 2.0)))


@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_of_a_loop_reads_what_its_carries_were(reverse: bool) -> None:
    h, c, x, w = inputs = [symbol(shape, "float64") for shape in ((2, 3), (2, 3), (5, 2, 3), (6, 3))]
    last, outputs = f.scan(gates, [h, c], [x], [w], reverse=reverse)
    total = f.sum(last[1]) + f.sum(outputs[1] * outputs[1])
    agree(Graph(tuple(inputs), (total, *gradient(total, inputs), outputs[1])))


def test_a_loop_in_a_loop_writes_rows_of_its_own() -> None:
    h, x = symbol((2,), "float64"), symbol((3, 4, 2), "float64")

    def outer(h: Node, rows: Node) -> Any:
        last, outputs = f.scan(lambda a, row: ([a * 0.5 + row], [a * row]), [h], [rows])
        return last, outputs

    last, outputs = f.scan(outer, [h], [x])
    total = f.sum(outputs[0] * outputs[0])
    agree(Graph((h, x), (*last, *outputs, *gradient(total, [h, x]))))


def test_a_loop_without_sequences_counts_its_steps() -> None:
    h = symbol((3,), "float64")
    last, outputs = f.scan(lambda a: ([a * 2.0], [a + 1.0]), [h], [], length=3)
    agree(Graph((h,), (*last, *outputs)))
