"""Random graphs agree with the reference: fusion, updates in place, and storage."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.lower.canonical import expand_graph
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, constant, interpret, numpy_namespace, ops, symbol

ROWS, COLUMNS = 5, 3
MATRIX, TURNED = (ROWS, COLUMNS), (COLUMNS, ROWS)


def turned(x: Node) -> Node:
    return ops.permute(x, axes=(1, 0))


def stretched(x: Node) -> Node:
    return ops.stretch(x, shape=MATRIX)


STEPS = [
    lambda x, y: x + y,
    lambda x, y: x * 0.5 - y,
    lambda x, y: ops.tanh(x),
    lambda x, y: ops.exp(-ops.abs(x)) / (ops.abs(y) + 1.0),
    lambda x, y: ops.where(x > y, x, y * 0.5),
    lambda x, y: ops.maximum(x, 0.0),
    lambda x, y: ops.tanh(x @ turned(y) @ x),
    lambda x, y: stretched(ops.sum(x, axis=(1,))) - y,
    lambda x, y: x / (stretched(ops.sum(ops.abs(x), axis=(1,))) + 1.0),
    lambda x, y: ops.softmax(x, axis=1) * y,
    lambda x, y: ops.softmax(x, axis=0) + y,
    lambda x, y: ops.max(x, axis=(0,)) + y,
    lambda x, y: ops.max(x, axis=(1,)) * y,
    lambda x, y: ops.sum(x * y, axis=(0, 1)) * 0.1 + x,
    lambda x, y: ops.sum(x, axis=(0,)) * 0.1 + y,
    lambda x, y: turned(ops.reshape(x, shape=TURNED)) + y,
    lambda x, y: turned(ops.sin(turned(x)) + turned(y)),
    lambda x, y: ops.stop(x),
    lambda x, y: stretched(ops.slice(x, start=(1, 0), stop=(2, COLUMNS), step=(1, 1))) - y,
    lambda x, y: ops.pad(
        ops.slice(x, start=(0, 1), stop=(ROWS, COLUMNS), step=(1, 1)),
        low=(0, 1), high=(0, 0), interior=(0, 0), value=0.0,
    ),
    lambda x, y: ops.concat(
        ops.slice(x, start=(0, 0), stop=(2, COLUMNS), step=(1, 1)),
        ops.slice(y, start=(2, 0), stop=(ROWS, COLUMNS), step=(1, 1)), axis=0,
    ),
    lambda x, y: ops.take(x, ops.reshape(ops.argmax(y, axis=1), shape=(ROWS,)), axis=0),
    lambda x, y: ops.scatter_add(x, ops.reshape(ops.argmax(y, axis=1), shape=(ROWS,)), y, axis=0),
    lambda x, y: ops.cast(ops.iota(shape=MATRIX, axis=1, dtype="int32"), dtype=x.dtype) * x,
    lambda x, y: x + ops.reshape(ops.sum(y, axis=(0,)), shape=(COLUMNS,)),
    lambda x, y: ops.cast(x > 0.0, dtype=x.dtype) + constant(0.25, x.dtype) * y,
    lambda x, y: ops.layer_norm(
        x, ops.reshape(ops.max(y, axis=(0,)), shape=(COLUMNS,)), ops.reshape(ops.sum(y, axis=(0,)), shape=(COLUMNS,)),
        epsilon=1e-3,
    ),
]  # fmt: skip


def reference(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return [np.array(x) for x in interpret(graph, numpy_namespace())(*arrays)]


@st.composite
def graphs(draw: st.DrawFn, dtype: str) -> tuple[Graph, dict[int, int]]:
    inputs = tuple(symbol(MATRIX, dtype) for _ in range(draw(st.integers(1, 4))))
    values = list(inputs)
    for _ in range(draw(st.integers(1, 14))):
        values.append(draw(st.sampled_from(STEPS))(draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    outputs = tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=5)))
    positions = draw(st.permutations(range(len(inputs))))
    return Graph(inputs, outputs), dict(zip(range(draw(st.integers(0, len(outputs)))), positions, strict=False))


def check(graph: Graph, donate: dict[int, int], tolerance: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    kept = [draw.normal(size=x.shape).astype(x.dtype) for x in graph.inputs]
    wanted, call = reference(graph, kept), NumbaBackend().lower(graph, donate)
    for _ in range(2):
        given_ = [x.copy() for x in kept]
        found = call(*given_)
        for result, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
        assert all(found[out] is given_[position] for out, position in donate.items())
        for position in set(range(len(kept))) - set(donate.values()):
            np.testing.assert_array_equal(given_[position], kept[position])
        for memory in call.machine.idle():
            memory.view(np.float32)[:] = np.nan  # what a previous call left in memory must not matter


slow = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(graphs("float64"), st.integers(0, 99))
@slow
def test_any_graph_with_any_donations_gives_what_the_reference_gives(made, seed):
    check(*made, tolerance=1e-9, seed=seed)


@given(graphs("float32"), st.integers(0, 99))
@slow
def test_derivatives_also_agree_in_float32(made, seed):
    check(*made, tolerance=2e-3, seed=seed)


def test_constant_arrays_are_inputs_of_the_program_and_run_nothing_in_python():
    x, places = symbol((2, 5)), np.array([4, 0, 0], np.int32)
    graph = Graph((x,), (f.take(x, places, 1) * np.array([1.0, 2.0, 3.0]), x + np.arange(5.0)))
    assert not {node.op for node in expand_graph(graph)} & {"python", "rows"}
    value = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    first, second = NumbaBackend().lower(graph, {})(value)
    np.testing.assert_array_equal(first, value[:, places] * np.float32([1, 2, 3]))
    np.testing.assert_array_equal(second, value + np.arange(5, dtype=np.float32))
