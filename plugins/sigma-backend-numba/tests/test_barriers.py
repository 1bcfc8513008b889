"""Barriers: values that wait, sums of rows that are not repeated, and barriers in loops."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_backend_numba.backend import NumbaBackend
from sigma_backend_numba.lower.barriers import lower_barriers
from sigma_backend_numba.lower.canonical import STATE, Form, expand_graph, frame
from sigma_backend_numba.plan.fusion import Grouping
from sigma_backend_numba.plan.schedule import GroupSchedule
from sigma_kernel.graph import Graph, Node, ops, symbol

ROWS = np.random.default_rng(0).normal(size=(6, 32)).astype("f4")


def compute(graph: Graph, *arrays: np.ndarray) -> list[np.ndarray]:
    return [np.array(x) for x in NumbaBackend().lower(graph, {})(*arrays)]


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph]


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (6, 32)])
def test_a_value_behind_a_barrier_is_the_same_whatever_it_waits_for(shape: tuple[int, ...]) -> None:
    x, gate = symbol((6, 32)), symbol(shape)
    (result,) = compute(Graph((x, gate), (ops.tanh(ops.barrier(x, gate)),)), ROWS, np.ones(shape, "f4"))
    (wanted,) = compute(Graph((x,), (ops.tanh(x),)), ROWS)
    assert result.tobytes() == wanted.tobytes()


def test_sums_of_rows_are_those_of_the_forward_pass_and_sums_over_the_batch_are_repeated() -> None:
    x, gate = symbol((6, 32)), symbol(())

    def reduce(value: Node) -> tuple[Node, Node]:
        return ops.sum(value, axis=(1,)), ops.sum(value, axis=(0,))

    graph = Graph((x, gate), (*reduce(ops.exp(x)), *reduce(ops.exp(ops.barrier(x, gate)))))
    rows, batch, same, again = lower_barriers(graph).outputs
    assert same is rows
    assert again is not batch
    assert "later" in names(Graph((), (again,)))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_place_of_a_maximum_is_found_behind_a_barrier(axis: int) -> None:
    x, gate = symbol((6, 32)), symbol(())
    values = (x, ops.barrier(x, gate))
    graph = Graph((x, gate), tuple(ops.argmax(value, axis=axis) for value in values))
    for result in compute(graph, ROWS, np.ones((), "f4")):
        np.testing.assert_array_equal(result, ROWS.argmax(axis, keepdims=True))
    first, second = lower_barriers(graph).outputs
    assert (first is second) == (axis == 1)


def test_a_sum_that_the_forward_pass_lacks_is_computed_behind_the_barrier() -> None:
    x, gate = symbol((6, 32)), symbol(())
    (total,) = lower_barriers(Graph((x, gate), (ops.sum(ops.barrier(x, gate), axis=(1,)),))).outputs
    assert "later" in names(Graph((), (total,)))


def test_a_barrier_in_the_body_of_a_loop_is_lowered_too() -> None:
    carry, row = symbol((32,)), symbol((32,))
    body = Graph((carry, row), (ops.tanh(ops.barrier(row, carry)) + carry,))
    x, first = symbol((6, 32)), symbol((32,))
    (last,), _ = ops.loop(body, [first], [x], [], 6, False)
    (result,) = compute(Graph((x, first), (last,)), ROWS, np.zeros(32, "f4"))
    np.testing.assert_allclose(result, np.tanh(ROWS).sum(0), rtol=1e-5)


def test_what_reads_behind_a_barrier_is_computed_in_a_later_stage_than_what_it_waits_for() -> None:
    x, w = symbol((64, 64)), symbol((64, 64))
    gate = ops.tanh(x @ w) @ w
    again = ops.exp(ops.barrier(x, gate)) @ w
    graph = expand_graph(Graph((x, w), (gate, again)))
    schedule = GroupSchedule(form := Form(graph, frame({STATE: 2}, [None, None])), Grouping(form))
    (power,) = (node for node in form.nodes if node.op == "exp")
    groups = schedule.grouping.groups.of
    assert groups[power].level > groups[form.outputs[0]].level
