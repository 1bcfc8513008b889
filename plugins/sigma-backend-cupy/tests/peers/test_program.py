"""Bursts: updates happen in place, and memory is known before the run."""

from __future__ import annotations

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, gradient, interpret, numpy_namespace, symbol

from .host import HostBackend


def test_an_update_overwrites_the_state_when_all_else_has_read_it() -> None:
    x, y, w = symbol((5, 3)), symbol((5, 2)), symbol((3, 2))
    loss = f.mean(f.square(f.tanh(x @ w) @ w.T @ w - y))
    (slope,) = gradient(loss, [w])
    step = Step(Graph((w, x, y), (w - slope, loss)), ("w",), ("x", "y"), (), ("w",), ("loss",))
    program = HostBackend().compile(step)
    assert program.run_step.unit.in_place == {0: 0}


def test_entries_of_the_state_that_swap_places_are_copied() -> None:
    one, other = symbol((3,)), symbol((3,))
    step = Step(Graph((one, other), (other, one, f.sum(one))), ("a", "b"), (), (), ("a", "b"), ("loss",))
    backend = HostBackend()
    program = backend.compile(step)
    state = {"a": np.full(3, 1, "float32"), "b": np.full(3, 2, "float32")}
    burst = program.run(state, {}, np.zeros((3, 0), np.int32), {}, 3)
    np.testing.assert_array_equal(burst.ring["loss"], [3, 6, 3])
    np.testing.assert_array_equal(burst.state["a"], [2, 2, 2])


def test_the_working_memory_of_a_step_is_known_before_it_runs() -> None:
    x = symbol((64, 64), "float64")
    product = f.tanh(x @ x)
    step = Step(Graph((x,), (product, f.sum(product @ product))), ("x",), (), (), ("x",), ("loss",))
    assert 2 * 64 * 64 * 8 <= HostBackend().compile(step).peak_bytes <= 6 * 64 * 64 * 8


def test_parts_of_arrays_of_two_shapes_may_lie_at_the_same_places() -> None:
    x, y = symbol((5, 3)), symbol((3, 4))
    graph = Graph((x, y), (f.narrow(x, 0, 0, 2) + f.narrow(f.permute(y, (1, 0)), 0, 0, 2),))
    arrays = [np.arange(15, dtype="float32").reshape(5, 3), np.arange(12, dtype="float32").reshape(3, 4)]
    (found,) = HostBackend().lower(graph, {})(*arrays)
    np.testing.assert_array_equal(found, interpret(graph, numpy_namespace())(*arrays)[0])
