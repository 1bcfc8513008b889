"""The plan, checked by a symbolic machine that executes it on random graphs."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest
from hypothesis import given, settings, strategies as st

from sigma_backend_numpy.plan import LEAVES, STRIDED, Plan, elementwise, plan
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ALIGNMENT, BYTES, Graph, Node, Spec, constant, ops, symbol, trace
from sigma_testing import samples


def chain(length: int, shape: tuple[int, ...] = (16,)) -> Graph:
    def function(x: Node) -> Node:
        for _ in range(length):
            x = ops.sin(x)
        return ops.sum(x, axis=(0,))

    return trace(function, Spec(shape))


# -- a symbolic machine that executes a plan ---------------------------------------------------------------------------
def check(graph: Graph, plan: Plan, donated: dict[int, int], scratch: Callable[[Node], int] = lambda node: 0) -> None:
    """Write the name of each value to its bytes, and check at every read that it is still there."""
    memory: dict[tuple[str, int], Node] = {}
    for node in graph.inputs:
        write(memory, cells(node, plan), node)
    assert set(plan.schedule) == {node for node in graph if node.op not in LEAVES}
    for node in plan.schedule:
        for operand in node.inputs:
            assert_there(memory, operand, plan)
        if node.op == "scan":
            for part in (n for n in plan.schedule if n.op == "part" and n.inputs[0] is node):
                write(memory, cells(part, plan), part)
        if node in plan.scratch:
            assert plan.scratch[node].size >= scratch(node) > 0
            write(memory, {("arena", i) for i in range(plan.scratch[node].offset, plan.scratch[node].end)}, node)
        if plan.owner[node] is node and node.op not in ("scan", "part"):
            write(memory, cells(node, plan), node, {cell for x in node.inputs for cell in shifted(x, node, plan)})
    for out, node in enumerate(graph.outputs):
        if out not in plan.copies:
            assert_there(memory, node, plan)
            where = next(iter(cells(plan.owner[node], plan)), None)
            home = ("input", id(graph.inputs[donated[out]])) if out in donated else ("result", out)
            assert where is None or where[:2] == home
    staged = [(out, snapshot(memory, graph.outputs[out], plan)) for out in plan.copies]
    for out, value in staged:
        assert value is plan.owner[graph.outputs[out]], f"output {out} was overwritten before it was copied"
    assert plan.arena_bytes == max((s.end for s in (*plan.arena.values(), *plan.scratch.values())), default=0)


def cells(node: Node, plan: Plan) -> set[tuple[str, int]]:
    """Return the bytes that hold an owner's value, and the store that they are in."""
    if node.op in ("constant", "array", "iota"):
        return set()
    if node.op == "input" or node in plan.in_place:
        given = node if node.op == "input" else plan.in_place[node]
        return {("input", id(given))}
    if node in plan.results:
        return {("result", plan.results[node])}
    storage = plan.arena[node]
    assert storage.offset % ALIGNMENT == 0
    assert storage.size >= prod(node.shape) * BYTES[node.dtype]
    return {("arena", i) for i in range(storage.offset, storage.end)}


def shifted(operand: Node, node: Node, plan: Plan) -> set[tuple[str, int]]:
    """Return the bytes of an operand that the node must not overwrite."""
    straight = operand
    while straight.op in ("reshape", "stop"):
        straight = straight.inputs[0]
    aligned = elementwise(node) and operand.shape == node.shape and straight is plan.owner[operand]
    return set() if aligned or operand.op == "scan" else cells(plan.owner[operand], plan)


def write(memory: dict, where: set, value: Node, forbidden: set = frozenset()) -> None:
    assert not where & forbidden, f"{value!r} overwrites an operand while it reads it"
    memory.update(dict.fromkeys(where, value))


def assert_there(memory: dict, node: Node, plan: Plan) -> None:
    if node.op != "scan":
        assert snapshot(memory, node, plan) is plan.owner[node], f"{node!r} was overwritten before it was read"


def snapshot(memory: dict, node: Node, plan: Plan) -> Node:
    owner = plan.owner[node]
    found = {memory[cell] for cell in cells(owner, plan)}
    return found.pop() if len(found) == 1 else owner if not found else constant(0.0)


# -- random graphs -----------------------------------------------------------------------------------------------------
SIDE = 5
ROWS: list[Callable[[Node, Node], Node]] = [
    lambda x, y: x + y,
    lambda x, y: x * x,
    lambda x, y: ops.where(x > y, x, y),
    lambda x, y: x @ y,
    lambda x, y: ops.permute(x, axes=(1, 0)),
    lambda x, y: ops.reshape(ops.reshape(x, shape=(SIDE * SIDE,)), shape=(SIDE, SIDE)),
    lambda x, y: ops.stretch(ops.slice(x, start=(1, 0), stop=(2, SIDE), step=(1, 1)), shape=(SIDE, SIDE)) - y,
    lambda x, y: ops.stop(x),
    lambda x, y: ops.sum(x, axis=(0,)) + y,
]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, dict[int, int]]:
    inputs = tuple(symbol((SIDE, SIDE)) for _ in range(draw(st.integers(1, 4))))
    values = list(inputs)
    for _ in range(draw(st.integers(1, 14))):
        values.append(draw(st.sampled_from(ROWS))(draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    outputs = tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=5)))
    positions = draw(st.permutations(range(len(inputs))))
    donated = dict(zip(range(draw(st.integers(0, len(outputs)))), positions, strict=False))
    return Graph(inputs, outputs), donated


@given(graphs())
@settings(max_examples=400, deadline=None)
def test_no_value_is_overwritten_before_its_last_read(made):
    graph, donated = made
    check(graph, plan(graph, donated), donated)


@given(graphs(), st.sampled_from([frozenset(), frozenset({"reshape"}), STRIDED]))
@settings(max_examples=200, deadline=None)
def test_plans_are_valid_for_backends_with_fewer_views_and_with_scratch(made, views):
    graph, donated = made

    def scratch(node: Node) -> int:
        return 100 if node.op == "matmul" else 0

    check(graph, plan(graph, donated, views, scratch), donated, scratch)


@pytest.mark.parametrize("sample", [s for rows in samples().values() for s in rows], ids=str)
def test_every_op_can_be_planned(sample):
    graph = sample.graph()
    check(graph, plan(graph), {})


# -- size --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("length", [2, 3, 50, 3000])
def test_a_chain_of_equal_ops_needs_two_buffers(length):
    made = plan(chain(length))
    assert made.arena_bytes == 2 * 64
    assert made.peak_bytes == 2 * 64 + 64 + 64  # plus the input and the result


def test_views_need_no_computation():
    def views(x: Node) -> Node:
        y = ops.sin(x)
        return ops.sin(ops.stretch(ops.permute(ops.reshape(y, shape=(8, 1, 2)), axes=(2, 1, 0)), shape=(2, 3, 8)))

    assert plan(trace(views, Spec((16,)))).arena_bytes == 64


def test_a_reshape_of_a_strided_view_is_copied():
    graph = trace(lambda x: ops.sin(ops.reshape(ops.permute(x, axes=(1, 0)), shape=(12,))), Spec((3, 4)))
    made = plan(graph)
    assert [node.op for node in made.arena] == ["reshape"]


def test_the_arena_fills_a_gap_with_the_first_value_that_fits():
    def function(x: Node) -> tuple[Node, ...]:
        small = ops.sin(x)
        large = ops.stretch(small, shape=(4, 16)) * 2.0
        late = ops.sin(ops.sum(large, axis=(0, 1)))
        return ops.sum(large, axis=(0,)) + late, late

    made = plan(trace(function, Spec((16,))))
    assert made.arena_bytes < sum(storage.size for storage in made.arena.values())


# -- updates in place --------------------------------------------------------------------------------------------------
def test_an_update_is_written_to_the_storage_of_its_parameter():
    graph = trace(lambda p, g: p - 0.1 * g, Spec((3,)), Spec((3,)))
    made = plan(graph, {0: 0})
    assert made.in_place == {graph.outputs[0]: graph.inputs[0]}
    assert made.copies == ()


def test_readers_of_a_parameter_run_before_its_update():
    def step(p: Node, x: Node) -> tuple[Node, Node]:
        return p - 0.1, ops.sum(x @ p, axis=(0, 1))

    graph = trace(step, Spec((3, 3)), Spec((3, 3)))
    made = plan(graph, {0: 0})
    assert made.in_place == {graph.outputs[0]: graph.inputs[0]}
    names = [node.op for node in made.schedule]
    assert names.index("matmul") < names.index("sub")


def test_a_parameter_read_after_its_update_is_not_updated_in_place():
    def step(p: Node) -> tuple[Node, Node]:
        new = ops.sin(p)
        return new, new + p

    graph = trace(step, Spec((3,)))
    made = plan(graph, {0: 0})
    assert made.in_place == {}
    assert made.copies == (0,)


@pytest.mark.parametrize(
    "update",
    [lambda p: p @ p, lambda p: p + ops.permute(p, axes=(1, 0)), lambda p: p - ops.sum(p, axis=(0,)) * 2.0],
    ids=["matmul", "transposed", "sum"],
)
def test_only_elementwise_ops_update_in_place(update):
    graph = trace(update, Spec((3, 3)))
    check(graph, plan(graph, {0: 0}), {0: 0})
    assert bool(plan(graph, {0: 0}).in_place) == (graph.outputs[0].op == "sub")


def test_parameters_that_read_each_other_are_copied_where_necessary():
    graph = trace(lambda p, q: (p + q, q - p), Spec((3,)), Spec((3,)))
    made = plan(graph, {0: 0, 1: 1})
    check(graph, made, {0: 0, 1: 1})
    assert len(made.in_place) == len(made.copies) == 1


def test_swapped_parameters_are_copied_and_unchanged_ones_are_not():
    p, q, r = (symbol((3,)) for _ in range(3))
    made = plan(Graph((p, q, r), (q, p, r)), {0: 0, 1: 1, 2: 2})
    assert made.copies == (0, 1)


def test_a_parameter_that_is_also_a_result_is_not_overwritten():
    p = symbol((3,))
    graph = Graph((p,), (ops.sin(p), p))
    made = plan(graph, {0: 0})
    assert (made.in_place, made.copies) == ({}, (0, 1))
    check(graph, made, {0: 0})


def test_a_donation_that_does_not_fit_is_refused():
    graph = trace(lambda p, q: (ops.sin(p), ops.sin(p)), Spec((3,)), Spec((4,)))
    with pytest.raises(SigmaGraphError, match=r"output 0, float32\[3\], does not fit the storage of input 1"):
        plan(graph, {0: 1})
    with pytest.raises(SigmaGraphError, match="two outputs cannot take the storage of one input"):
        plan(graph, {0: 0, 1: 0})


def test_the_last_outputs_are_computed_first_so_that_gradients_of_late_layers_are_not_kept():
    x, late, early = symbol((64, 64)), symbol((64, 64)), symbol((64, 64))
    inner = ops.exp(x)
    flow = ops.tanh(inner @ late)
    slope = inner.T @ flow  # of the last layer, whose values are free afterwards
    back = ops.exp(flow @ late)
    first = x.T @ back @ early
    in_order, reverse = (plan(Graph((x, late, early), outputs)) for outputs in ((first, slope), (slope, first)))
    places = {node: i for i, node in enumerate(in_order.schedule)}
    assert places[slope] < places[back]
    assert in_order.peak_bytes <= reverse.peak_bytes
