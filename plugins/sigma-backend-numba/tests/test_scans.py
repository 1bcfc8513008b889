"""Scans: cut into chunks of the batch, with matrices that are packed once, and carries that are written in place."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.execute import thread_pool
from sigma_backend_numba.lower.batch_chunks import CHUNKS
from sigma_backend_numba.lower.canonical import expand_graph
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, gradient, interpret, numpy_namespace, ops, rewrite, symbol

TIME, UNITS = 6, 40


def recurrence(rows: int, inner: int = UNITS, columns: int = UNITS, dtype: str = "float32", time: int = TIME) -> Graph:
    """Return the graph of a walk forward and one back over it, and their gradients."""
    x, h = symbol((time, rows, columns), dtype), symbol((rows, inner), dtype)
    w, u = symbol((inner, columns), dtype), symbol((columns, inner), dtype)

    def body(h: Node, now: Node) -> tuple[list[Node], list[Node]]:
        wide = f.tanh(h @ w + now)
        return [f.tanh(wide @ u) + h * 0.5], [wide]

    (there,), (wide,) = f.scan(body, [h], [x])
    (back,), _ = f.scan(body, [there], [wide], reverse=True)
    slopes = gradient(f.sum(back * back), [x, h, w, u])
    return Graph((x, h, w, u), (there, back, *slopes))


def drawn(graph: Graph) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [np.asarray(draw.normal(size=node.shape) * 0.15, node.dtype) for node in graph.inputs]


def agrees(graph: Graph, tolerance: float = 2e-5, threads: int = 2) -> None:
    """Compare all outputs with the reference."""
    arrays = drawn(graph)
    wanted = [np.array(x) for x in interpret(rewrite(graph), numpy_namespace())(*arrays)]
    found = NumbaBackend(threads=threads).lower(graph, {})(*arrays)
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        scale = np.abs(other).max(initial=1e-30)
        np.testing.assert_allclose(one / scale, other / scale, atol=tolerance, err_msg=f"output {number}")


def scans(graph: Graph) -> list[Node]:
    return [node for node in expand_graph(graph) if node.op == "scan"]


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool.POOL, "most", 3)


@pytest.mark.long_cases("float32-16-33-70", "float32-30-65-31", "float64-16-33-70", "float64-30-65-31")
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(1, 40, 17), (16, 33, 70), (24, 16, 48), (30, 65, 31), (72, 47, 16), (64, 3, 5)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recurrences_of_any_size_agree_with_the_reference(rows, inner, columns, dtype):
    agrees(recurrence(rows, inner, columns, dtype), 2e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("time", [0, 1, 2, 3])
def test_sequences_of_any_length_agree_with_the_reference(time):
    agrees(recurrence(32, time=time))


def test_rows_that_depend_on_no_others_are_cut_into_chunks_of_eight_or_more():
    for rows, chunks in ((15, 1), (16, 2), (32, 4), (40, 5), (37, 1), (64, CHUNKS), (800, CHUNKS)):
        found = scans(recurrence(rows, 128, 128, time=50))
        assert [node.attrs.get("chunks", 1) for node in found] == [chunks] * 4
        assert {node.attrs["body"].outputs[0].shape[0] for node in found} == {rows // chunks}


def test_a_short_walk_is_not_cut():
    assert {node.attrs.get("chunks", 1) for node in scans(recurrence(32, 8, 8, time=4))} == {1}


def test_matrices_that_every_step_multiplies_by_are_packed_before_the_loop():
    for scan in scans(recurrence(32)):
        inside = [node.op for node in scan.attrs["body"]]
        assert inside.count("packed") >= 1
        assert "matmul" not in inside
        assert len(scan.inputs) == len(scan.attrs["split"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_matrices_that_are_rounded_are_packed_before_the_loop_and_the_batch_is_cut(dtype):
    x, h, w = symbol((50, 32, 128)), symbol((32, 128)), symbol((128, 128))

    def body(h: Node, now: Node) -> tuple[list[Node], list[Node]]:
        return [f.tanh(0.3 * ops.mixed_matmul(h, w, dtype=dtype) + now)], []

    (last,), _ = f.scan(body, [h], [x])
    graph = Graph((x, h, w), (last, *gradient(f.sum(last * last), [h, w])))
    for scan in scans(graph):
        inside = scan.attrs["body"]
        assert scan.attrs["chunks"] == 4
        assert "packed" in [node.op for node in inside]
        assert {node.shape[0] for node in inside if node.op == "reduce_precision"} == {8}  # rows, and no matrix
    agrees(graph, 2e-2)  # a sum may round to the next number


def test_the_gradient_of_a_bias_inside_a_body_is_summed_after_the_loop():
    x, h, w, b, c = symbol((20, 32, 64)), symbol((32, 64)), symbol((64, 64)), symbol((64,)), symbol((1,))

    def body(h: Node, now: Node) -> tuple[list[Node], list[Node]]:
        wide = f.tanh(h @ w + b) * now
        return [0.5 * (wide + h) + c], [wide]

    (last,), (wide,) = f.scan(body, [h], [x])
    graph = Graph((x, h, w, b, c), (last, *gradient(f.sum(last * last) + f.sum(wide), [x, h, w, b, c])))
    assert [(scan.attrs["carries"], scan.attrs["chunks"]) for scan in scans(graph)] == [(1, 4)] * 2
    agrees(graph)


@pytest.mark.parametrize("wide", [(1, 32), (3, 32), (1, 1, 32)])
def test_a_sum_after_the_loop_has_the_shape_of_its_carry_which_may_be_wider_than_its_terms(wide, monkeypatch):
    monkeypatch.setattr("sigma_backend_numba.lower.batch_chunks.CHUNK", 1e4)
    x, h, begin = symbol((40, 32, 32)), symbol((32, 32)), symbol(wide)

    def body(h: Node, total: Node, now: Node) -> tuple[list[Node], list[Node]]:
        after = f.tanh(h * 0.5 + now)
        return [after, total + f.sum(after, 0)], []

    (last, total), _ = f.scan(body, [h, begin], [x])
    graph = Graph((x, h, begin), (last, f.concat(total, total)))
    assert [scan.attrs["carries"] for scan in scans(graph)] == [1]
    agrees(graph)


@pytest.mark.parametrize("read", ["every sum", "the last sum and its rows"])
def test_a_sum_stays_in_the_loop_only_if_each_step_reads_it(read, monkeypatch):
    monkeypatch.setattr("sigma_backend_numba.lower.batch_chunks.CHUNK", 1e4)
    x, h, total = symbol((40, 32, 32)), symbol((32, 32)), symbol((32,))

    def body(h: Node, total: Node, now: Node) -> tuple[list[Node], list[Node]]:
        new = f.tanh(h * 0.5 + now)
        more = total + f.sum(new, 0)
        return [new, more], [more * 2.0] if read == "every sum" else [new]

    (last, total_), (outputs,) = f.scan(body, [h, total], [x])
    graph = Graph((x, h, total), (last, total_, outputs))
    [scan] = scans(graph)
    assert scan.attrs["carries"] == (2 if read == "every sum" else 1)
    agrees(graph)


MIXED = {
    "a sum over the batch": lambda h, x, fixed: h + x + f.sum(h, 0, keepdims=True),
    "a product of rows": lambda h, x, fixed: h * 0.1 + f.softmax(h @ f.swap_axes(h, 0, 1)) @ x,
    "rows that change places": lambda h, x, fixed: h + x * f.concat(*f.split(h, 2, 0)[::-1], axis=0),
    "a square that is turned": lambda h, x, fixed: h + f.swap_axes(x, 0, 1),
    "numbers of rows": lambda h, x, fixed: h + x * f.cast(f.iota((32, 32), 0, "int32"), "float32"),
    "a row and all rows": lambda h, x, fixed: h + x + f.sum(x, 0, keepdims=True),
}
CUT = {
    "gates": lambda h, x, fixed: f.concat(*[f.tanh(one) for one in f.split(h + x, 4)]),
    "values of each row": lambda h, x, fixed: h * fixed + f.max(x, 1, keepdims=True),
    "a product with a value of each row": lambda h, x, fixed: f.reshape(h, (32, 4, 8)).reshape(32, 32) + fixed @ x[:1],
    "columns that are counted": lambda h, x, fixed: h * 0.5 + f.cast(f.iota((32, 32), 1, "int32"), "float32") * x,
    "rows of samples": lambda h, x, fixed: h + f.reshape(f.swap_axes(f.reshape(x, (32, 8, 4)), 1, 2), (32, 32)),
    "a table": lambda h, x, fixed: h * 0.5 + f.take(fixed, f.argmax(x, 1), 0),
    "rows of a whole sequence": lambda h, x, fixed: h * 0.1 + f.softmax(h @ f.swap_axes(x, 0, 1)) @ x,
}


def walk(step, fixed: Node) -> Graph:
    h, x = symbol((32, 32)), symbol((40, 32, 32))
    (last,), (outputs,) = f.scan(lambda h, now: ([f.tanh(step(h, now, fixed))], [h]), [h], [x])
    return Graph((h, x, fixed), (last, outputs))


@pytest.mark.parametrize("name", [*MIXED, *CUT])
def test_only_scans_whose_rows_are_independent_are_cut(name, monkeypatch):
    monkeypatch.setattr("sigma_backend_numba.lower.batch_chunks.CHUNK", 1e4)
    graph = walk((MIXED | CUT)[name], symbol((32, 1)))
    [scan] = scans(graph)
    assert scan.attrs.get("chunks", 1) == (4 if name in CUT else 1)
    agrees(graph)


def test_a_walk_has_the_same_bits_on_any_number_of_threads(three):
    graph = recurrence(64, 96, 80, time=20)
    arrays = drawn(graph)
    runs = [NumbaBackend(threads=count).lower(graph, {}) for count in (1, 2, 3)]
    assert runs[0].machine.needs["threads"] >= 3
    found = [[x.tobytes() for x in run(*arrays)] for run in runs for _ in range(2)]
    assert all(one == found[0] for one in found)


def test_scans_within_scans_agree_with_the_reference():
    x, h, w = symbol((3, 5, 16, 24)), symbol((16, 24)), symbol((24, 24))

    def outer(h: Node, each: Node) -> tuple[list[Node], list[Node]]:
        (last,), (every,) = f.scan(lambda h, now: ([f.tanh(h @ w + now)], [h]), [h], [each])
        return [last], [f.sum(every, 0)]

    (last,), (sums,) = f.scan(outer, [h], [x])
    agrees(Graph((x, h, w), (last, sums, *gradient(f.sum(last * last) + f.sum(sums), [x, h, w]))), 5e-5)


def test_second_derivatives_through_a_walk_agree_with_the_reference():
    x, h, w = symbol((5, 16, 24), "float64"), symbol((16, 24), "float64"), symbol((24, 24), "float64")
    (last,), _ = f.scan(lambda h, now: ([f.tanh(h @ w + now)], []), [h], [x])
    first = gradient(f.sum(last * last), [x, h, w])
    loss = f.sum(first[0] * first[0]) + f.sum(first[2] * first[2])
    agrees(Graph((x, h, w), (*first, *gradient(loss, [x, h, w]))), 1e-11)


def test_a_carry_that_is_stacked_and_returned_twice_is_the_same_everywhere():
    x, h = symbol((7, 16, 5)), symbol((16, 5))
    (last, again), (outputs, same, before) = f.scan(
        lambda h, g, now: ([f.tanh(h + now), g * 0.5 + h], [f.tanh(h + now), now, h]), [h, h], [x]
    )
    slope = gradient(f.sum(last * again) + f.sum(outputs * before), [h, x])
    agrees(Graph((x, h), (last, again, outputs, same, before, *slope)))


def test_operands_of_a_concat_are_written_to_their_places():
    x, y = symbol((9, 4)), symbol((9, 3))
    both = f.concat(f.tanh(x), f.exp(y), f.tanh(x) * 2.0)
    inner = f.concat(both, f.sin(both), axis=0)
    agrees(Graph((x, y), (both, inner * 2.0, f.concat(y, f.exp(y) @ f.tanh(y[:3])))))


def test_the_gradients_of_the_parts_of_a_value_are_put_side_by_side():
    x, y = symbol((3, 8)), symbol((3, 8))
    one, two, three = f.split(x, (2, 5, 1))
    [slope] = gradient(f.sum(f.tanh(one)) + f.sum(two * two) + f.sum(f.exp(three)), [x])
    [partial] = gradient(f.sum(f.tanh(one)) + f.sum(two * two), [x])
    assert [node.op for node in expand_graph(Graph((x, y), (slope,)))].count("pad") == 0
    assert [node.op for node in expand_graph(Graph((x, y), (partial,)))].count("pad") == 2
    agrees(Graph((x, y), (slope, partial, slope * y)))
