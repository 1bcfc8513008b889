"""Patterns that become single calls, and updates that are written into the state, against the reference."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from sigma_backend_numpy import NumpyBackend
from sigma_backend_torch import TorchBackend
from sigma_backend_torch.program import simplify
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, Node, gradient, ops, symbol

DRAW = np.random.default_rng(0)
PADDINGS = {1: ((1, 0),), 2: ((1, 2), (0, 1)), 3: ((1, 1), (1, 1), (0, 2))}


def agree(graph: Graph, *arrays: np.ndarray) -> None:
    found, wanted = (
        [backend.to_host(x) for x in backend.lower(graph, {})(*map(backend.to_device, arrays))]
        for backend in (TorchBackend(), NumpyBackend())
    )
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def called(graph: Graph) -> set[str]:
    return {x.op for x in simplify(graph)}


def test_a_layer_and_its_update_are_single_calls() -> None:
    shapes = ((64, 80), (80, 70), (70,), (64, 70), ())
    x, w, b, g, rate = inputs = tuple(symbol(shape, "float64") for shape in shapes)
    slopes = gradient(f.sum(g * f.relu(x @ w + b)), [w, b])
    graph = Graph(inputs, tuple(p - rate * g for p, g in zip((w, b), slopes, strict=True)))
    assert {"torch:addmm", "torch:rectified", "torch:addcmul", "torch:total"} <= called(graph)
    assert called(graph).isdisjoint({"where", "add", "sub", "mul", "sum"})
    agree(graph, *(DRAW.normal(size=node.shape) for node in graph.inputs))


def test_the_gradient_of_a_relu_is_that_of_pytorch_at_nan_and_0() -> None:
    x, g = symbol((4,), "float32"), symbol((4,), "float32")
    graph = Graph((x, g), tuple(gradient(f.sum(g * f.relu(x)), [x])))
    assert "torch:rectified" in called(graph)
    values, slopes = np.array([np.nan, 1, 0, -1], np.float32), np.array([2, 3, 4, 5], np.float32)
    backend, theirs = TorchBackend(), torch.tensor(values, requires_grad=True)
    [found] = backend.lower(graph, {})(backend.to_device(values), backend.to_device(slopes))
    torch.relu(theirs).backward(torch.tensor(slopes))
    assert backend.to_host(found).tolist() == theirs.grad.tolist() == [2, 3, 0, 0]


def test_the_gates_of_a_recurrent_layer_are_single_calls() -> None:
    x, g = symbol((6, 12), "float64"), symbol((6, 12), "float64")
    a, b, c = ops.pieces(x, [4, 3, 5], 1)
    (slope,) = gradient(f.sum(g * f.concat(f.sigmoid(a), f.tanh(b), f.sin(c), axis=1)), [x])
    graph = Graph((x, g), (slope,))
    assert {"torch:tanh_slope", "torch:logistic_slope", "concat"} <= called(graph)
    assert "pad" not in called(graph)
    agree(graph, DRAW.normal(size=x.shape), DRAW.normal(size=x.shape))


def test_pieces_with_a_gap_or_an_overlap_are_not_joined() -> None:
    for low, high in ((4, 6), (2, 4), (3, 4)):
        x, y = symbol((2, 3), "float64"), symbol((2, 10 - low - high), "float64")
        wide = [f.pad(x, low=(0, 0), high=(0, 7), interior=(0, 0), value=0.0)]
        wide += [f.pad(y, low=(0, low), high=(0, high), interior=(0, 0), value=0.0)]
        agree(Graph((x, y), (wide[0] + wide[1],)), DRAW.normal(size=x.shape), DRAW.normal(size=y.shape))


def test_pieces_of_different_shapes_are_not_joined() -> None:
    shapes = (1, 3), (3, 4), (3, 5), (2, 2, 7)
    inputs = row, rows, one, others = tuple(symbol(shape, "float64") for shape in shapes)
    broadcast = f.pad(row, (0, 0), (0, 4)) + f.pad(rows, (0, 3), (0, 0))
    of_two_ranks = f.pad(one, (0, 2), (0, 0)) + f.pad(others, (0, 0, 0), (0, 1, 0))
    agree(Graph(inputs, (broadcast, of_two_ranks)), *(DRAW.normal(size=shape) for shape in shapes))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_maxima_and_their_places_are_one_call_for_every_padding(axes: int) -> None:
    for padding in (((0, 0),) * axes, ((1, 1),) * axes, PADDINGS[axes]):
        x = symbol((2, 3, *(7, 6, 5)[:axes]), "float64")
        best = f.max_pool(x, window=(3,) * axes, stride=(2, 1, 2)[:axes], padding=padding)
        graph = Graph((x,), (best, *gradient(f.sum(best * best), [x])))
        assert called(graph) >= {"torch:pool", "torch:pool_back"}
        for values in (DRAW.normal(size=x.shape), DRAW.integers(0, 2, x.shape).astype(float), np.zeros(x.shape)):
            agree(graph, values)


def test_a_choice_keeps_what_is_not_finite_and_drops_what_is_not_chosen() -> None:
    x, chosen = symbol((80, 80), "float64"), symbol((80, 80), "bool")
    graph = Graph((x, chosen), (f.where(chosen, x, 0.0),))
    assert "torch:kept" in called(graph)
    values = np.where(DRAW.random(x.shape) < 0.5, np.nan, DRAW.normal(size=x.shape)) * np.inf
    agree(graph, values, DRAW.random(x.shape) < 0.5)


# -- state -------------------------------------------------------------------------------------------------------------
def program(*outputs: Node, state: tuple[Node, ...], in_place: bool = True) -> tuple[Any, dict[str, Any]]:
    """Return a program whose first results replace the state, and others are recorded; and a state."""
    names = tuple("abc"[: len(state)])
    ring = tuple(f"r{i}" for i in range(len(outputs) - len(state)))
    step = Step(Graph(state, outputs), names, (), (), names, ring)
    start = {name: np.arange(4.0).reshape(2, 2) + i for i, name in enumerate(names)}
    return TorchBackend().compile(step, in_place), {name: TorchBackend().to_device(x) for name, x in start.items()}


NOTHING = np.zeros((3, 0), "int64")


def test_results_are_written_into_the_state_unless_it_must_stay() -> None:
    a = symbol((2, 2), "float64")
    for in_place in (True, False):
        run, state = program(a * 2.0, f.sum(a), state=(a,), in_place=in_place)
        burst = run.run(state, {}, NOTHING, {}, 3)
        assert burst.state["a"].tolist() == [[0, 8], [16, 24]]
        assert (burst.state["a"] is state["a"]) == in_place
        assert state["a"].tolist() == ([[0, 8], [16, 24]] if in_place else [[0, 1], [2, 3]])
        assert burst.ring["r0"].tolist() == [6, 12, 24]


def test_old_values_are_read_before_they_are_overwritten() -> None:
    a, b = symbol((2, 2), "float64"), symbol((2, 2), "float64")
    new, turned = a + b, f.permute(a, axes=(1, 0))
    cases = {
        "swapped": (b, a), "crossed": (a + b, a - b), "turned": (turned + b, turned * b), "shared": (new, new),
        "shared and turned": (new, f.permute(new, axes=(1, 0))),
        "itself": (a * 3.0, f.reshape(a, shape=(2, 2))), "difference": (a * 3.0, a * 3.0 - a),
        "crossed and turned": (b * 3.0, turned * 2.0), "turned and added": (turned + a, b * 2.0),
    }  # fmt: skip
    for (name, outputs), records in product(cases.items(), [(a, turned), (f.sum(a),), ()]):
        run, state = program(*outputs, *records, state=(a, b))
        held = {entry: x.numpy().copy() for entry, x in state.items()}
        expected = NumpyBackend().compile(run.step).run(held, {}, NOTHING, {}, 3)
        burst = run.run(state, {}, NOTHING, {}, 3)
        assert burst.state.keys() == expected.state.keys()
        for entry, value in [*expected.state.items(), *expected.ring.items()]:
            np.testing.assert_array_equal({**burst.state, **burst.ring}[entry], value, err_msg=name)
