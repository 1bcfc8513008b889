"""Programs: whole graphs agree with the reference; storage, scans, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_backend_numpy import NumpyBackend
from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import (
    MEANINGS,
    Graph,
    Node,
    Op,
    Spec,
    constant,
    gradient,
    interpret,
    numpy_namespace,
    ops,
    rewrite,
    symbol,
    trace,
)
from sigma_testing import samples

SIDE = 4
DRAW = np.random.default_rng(0)
ROWS = [
    lambda x, y: x + y,
    lambda x, y: ops.tanh(x),
    lambda x, y: ops.where(x > y, x, y),
    lambda x, y: ops.tanh(x @ y),
    lambda x, y: ops.permute(x, axes=(1, 0)),
    lambda x, y: ops.reshape(ops.reshape(ops.permute(x, axes=(1, 0)), shape=(SIDE * SIDE,)), shape=(SIDE, SIDE)),
    lambda x, y: ops.stretch(ops.slice(x, start=(1, 0), stop=(2, SIDE), step=(1, 1)), shape=(SIDE, SIDE)) - y,
    lambda x, y: ops.stop(x),
    lambda x, y: ops.max(x, axis=(0,)) + y,
    lambda x, y: ops.cast(ops.iota(shape=(SIDE, SIDE), axis=1, dtype="int32"), dtype="float64") * x,
]


def reference(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [np.array(x) for x in interpret(graph, numpy_namespace())(*arrays)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, dict[int, int]]:
    inputs = tuple(symbol((SIDE, SIDE), "float64") for _ in range(draw(st.integers(1, 4))))
    values = list(inputs)
    for _ in range(draw(st.integers(1, 12))):
        values.append(draw(st.sampled_from(ROWS))(draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    outputs = tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=5)))
    positions = draw(st.permutations(range(len(inputs))))
    return Graph(inputs, outputs), dict(zip(range(draw(st.integers(0, len(outputs)))), positions, strict=False))


@given(graphs())
@settings(max_examples=300, deadline=None)
def test_any_graph_with_any_donations_gives_what_the_reference_gives(made):
    graph, donate = made
    arrays = [DRAW.normal(size=(SIDE, SIDE)) for _ in graph.inputs]
    wanted, kept = reference(graph, arrays), [x.copy() for x in arrays]
    program = NumpyBackend().lower(graph, donate)
    for _ in range(2):
        given = [x.copy() for x in kept]
        found = program(*given)
        for result, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
        for position in set(range(len(given))) - set(donate.values()):
            np.testing.assert_array_equal(given[position], kept[position])
        for out, result in enumerate(found):
            if out in donate:
                assert result is given[donate[out]]
            else:
                assert not any(np.shares_memory(result, array) for array in given)


def test_results_share_no_memory_with_each_other():
    graph = trace(lambda x: (ops.sin(x), ops.reshape(ops.sin(x), shape=(4,)), ops.sin(x), x), Spec((2, 2)))
    first = NumpyBackend().lower(graph, {})(np.ones((2, 2), "f4"))
    assert not any(np.shares_memory(a, b) for i, a in enumerate(first) for b in first[:i])


def test_parameters_may_be_swapped():
    p, q = symbol((3,)), symbol((3,))
    arrays = [np.zeros(3, "f4"), np.ones(3, "f4")]
    NumpyBackend().lower(Graph((p, q), (q, p)), {0: 0, 1: 1})(*arrays)
    assert [x.tolist() for x in arrays] == [[1, 1, 1], [0, 0, 0]]


def test_a_read_only_donated_array_is_copied():
    graph = trace(lambda p: p + 1.0, Spec((2, 3)))
    locked, turned = np.zeros((2, 3), "f4"), np.zeros((3, 2), "f4").T
    locked.flags.writeable = False
    for array in (locked, turned):
        assert NumpyBackend().lower(graph, {0: 0})(array)[0].tolist() == [[1, 1, 1], [1, 1, 1]]
        assert not array.any()


def test_python_numbers_are_accepted_as_scalars():
    graph = trace(lambda x, rate: x * rate, Spec((2,)), Spec(()))
    assert NumpyBackend().lower(graph, {})(np.ones(2, "f4"), 0.5)[0].tolist() == [0.5, 0.5]


def test_an_array_of_another_shape_is_refused():
    graph = trace(lambda x: x + 1.0, Spec((2,)))
    with pytest.raises(SigmaGraphError, match=r"input 0 has shape \(3,\). The graph takes \(2,\)"):
        NumpyBackend().lower(graph, {})(np.ones(3, "f4"))


def test_a_dtype_inside_a_scan_is_refused_too():
    body = trace(lambda c: (ops.cast(ops.cast(c, dtype="float16"), dtype="float32"),), Spec((2,)))

    def walk(c: Node) -> Node:
        scan = ops.scan(c, body=body, carries=1, sequences=0, length=3, reverse=False)
        return ops.part(scan, index=0, shape=(2,), dtype="float32")

    with pytest.raises(SigmaGraphError, match="numpy: this backend does not compute in float16. Use: bool, float32"):
        NumpyBackend().lower(trace(walk, Spec((2,))), {})


def test_an_op_of_a_plugin_runs_by_its_meaning(monkeypatch):
    monkeypatch.setitem(MEANINGS, "acme:cube", lambda ns, x: x * x * x)
    x = symbol((2,))
    cube = Op("acme:cube", lambda x: x, lambda x: x)
    assert NumpyBackend().lower(Graph((x,), (cube(x),)), {})(np.array([2, 3], "f4"))[0].tolist() == [8, 27]


def test_peak_bytes_are_known_before_the_run():
    graph = trace(lambda x: ops.sin(ops.sin(ops.sin(x))), Spec((1000,)))
    assert NumpyBackend().lower(graph, {}).peak_bytes == 4 * 4032  # input, result and two buffers of whole cache lines


# -- scans -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wanted", [(0,), (2,), (3, 4), (1, 2, 3), (0, 0, 2)], ids=str)
@pytest.mark.parametrize("sample", samples()["scan"][1:], ids=str)
def test_a_scan_returns_only_the_requested_parts(sample, wanted):
    whole = sample.graph()
    graph = Graph(whole.inputs, tuple(whole.outputs[i] for i in wanted))
    program = NumpyBackend().lower(graph, {})
    for found, expected in zip(program(*sample.arrays), reference(graph, sample.arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_the_gradient_of_a_recurrent_network_agrees_with_the_reference():
    sample = samples()["scan"][1]
    whole = sample.graph()
    loss = f.sum(whole.outputs[2] * whole.outputs[2]) + f.sum(whole.outputs[0])
    graph = Graph(whole.inputs, tuple(gradient(loss, whole.inputs)))
    program = NumpyBackend().lower(graph, {})
    for found, expected in zip(program(*sample.arrays), reference(graph, sample.arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_scan_of_zero_steps_returns_its_carry():
    body = trace(lambda c, x: (c + x, c), Spec((2,)), Spec((2,)))

    def walk(c: Node, x: Node) -> list[Node]:
        scan = ops.scan(c, x, body=body, carries=1, sequences=1, length=0, reverse=False)
        return [ops.part(scan, index=i, shape=shape, dtype="float32") for i, shape in enumerate([(2,), (0, 2)])]

    graph = trace(walk, Spec((2,)), Spec((0, 2)))
    final, rows = NumpyBackend().lower(graph, {})(np.ones(2, "f4"), np.ones((0, 2), "f4"))
    assert (final.tolist(), rows.shape) == ([1, 1], (0, 2))


def test_swapped_carries_do_not_overwrite_each_other():
    body = trace(lambda a, b, x: (b, a + x), *(Spec((2,)) for _ in range(3)))

    def walk(a: Node, b: Node, x: Node) -> list[Node]:
        scan = ops.scan(a, b, x, body=body, carries=2, sequences=1, length=5, reverse=False)
        return [ops.part(scan, index=i, shape=(2,), dtype="float32") for i in range(2)]

    graph = trace(walk, Spec((2,)), Spec((2,)), Spec((5, 2)))
    arrays = [np.zeros(2, "f4"), np.ones(2, "f4"), np.arange(10, dtype="f4").reshape(5, 2)]
    for found, expected in zip(NumpyBackend().lower(graph, {})(*arrays), reference(graph, arrays), strict=True):
        np.testing.assert_array_equal(found, expected)


# -- threads -----------------------------------------------------------------------------------------------------------
def test_threads_use_separate_buffers():
    def deep(x: Node) -> Node:
        for _ in range(20):
            x = ops.tanh(x @ x) + constant(0.1)
        return x

    program = NumpyBackend().lower(rewrite(trace(deep, Spec((48, 48)))), {})
    inputs = [DRAW.normal(size=(48, 48)).astype("f4") for _ in range(24)]
    alone = [program(x)[0].tobytes() for x in inputs]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda x: program(x)[0].tobytes(), inputs)) == alone


def test_a_program_stays_usable_after_a_failed_call():
    program = NumpyBackend().lower(trace(lambda x, i: ops.take(x, i, axis=0), Spec((3,)), Spec((1,), "int32")), {})
    with pytest.raises(SigmaGraphError):
        program(np.ones(3, "f4"), np.array([5], "i4"))
    assert program(np.ones(3, "f4"), np.array([2], "i4"))[0].tolist() == [1]
