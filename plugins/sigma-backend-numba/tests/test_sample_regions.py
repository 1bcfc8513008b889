"""Sample regions: which groups may alternate sample by sample, and which must not."""

from __future__ import annotations

from importlib import util
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.lower.canonical import STATE, Form, expand_graph, frame
from sigma_backend_numba.plan.fusion import Grouping
from sigma_backend_numba.plan.schedule import GroupSchedule
from sigma_kernel.graph import Graph, Node, constant, gradient, interpret, numpy_namespace, ops, symbol

_spec = util.spec_from_file_location("nets", Path(__file__).with_name("nets.py"))
assert _spec is not None
assert _spec.loader is not None
nets = util.module_from_spec(_spec)
_spec.loader.exec_module(nets)

POOL = {"window": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}
CONVOLVE = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
SHAPE = (4, 4, 6, 6)


def schedule(graph: Graph) -> GroupSchedule:
    form = Form(expand_graph(graph), frame({STATE: len(graph.inputs)}, [None] * len(graph.outputs)))
    return GroupSchedule(form, Grouping(form))


def pooled(x: Node) -> Node:
    return ops.max_pool(ops.tanh(x), **POOL)


def ops_of_regions(graph: Graph) -> list[set[str]]:
    regions = schedule(graph).stages
    return [
        {g.core.op for g in r.groups if g.core is not None} for stage in regions for r in stage if len(r.groups) > 1
    ]


GRAPHS = {
    "in turn": lambda x, k: ops.max_pool(ops.convolution(pooled(x), k, **CONVOLVE), window=(3, 3), **{
        name: value for name, value in POOL.items() if name == "padding"}, stride=(3, 3)),
    "batch and channels change places": lambda x, k: pooled(x) + ops.permute(pooled(x), axes=(1, 0, 2, 3)),
    "the first sample goes to all": lambda x, k: pooled(x) - ops.stretch(
        ops.slice(pooled(x), start=(0, 0, 0, 0), stop=(1, 4, 3, 3), step=(1, 1, 1, 1)), shape=(4, 4, 3, 3)),
    "samples in another order": lambda x, k: pooled(x) * ops.take(
        pooled(x), ops.iota(shape=(4,), axis=0, dtype="int32") * -1 + 3, axis=0),
    "the kernel comes from the samples": lambda x, k: ops.convolution(pooled(x), pooled(x), **CONVOLVE),
    "the mean of all samples": lambda x, k: pooled(x) - ops.stretch(
        ops.sum(pooled(x), axis=(0,)), shape=(4, 4, 3, 3)) * constant(0.25),
    "one sample read as another": lambda x, k: ops.max_pool(ops.tanh(ops.reshape(
        pooled(x), shape=(2, 8, 3, 3))), window=(3, 3), stride=(3, 3), padding=((0, 0), (0, 0))),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_any_sample_regions_give_the_result_of_the_reference(name):
    x, k = symbol(SHAPE), symbol((4, 4, 3, 3))
    graph = Graph((x, k), (GRAPHS[name](x, k),))
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=node.shape).astype(node.dtype) for node in graph.inputs]
    (wanted,) = interpret(graph, numpy_namespace())(*arrays)
    np.testing.assert_allclose(NumbaBackend().lower(graph, {})(*arrays)[0], wanted, rtol=1e-5, atol=1e-5)


def test_convolution_and_pooling_alternate_sample_by_sample():
    x, k = symbol(SHAPE), symbol((4, 4, 3, 3))
    assert ops_of_regions(Graph((x, k), (GRAPHS["in turn"](x, k),))) == [{"max_pool", "convolution"}]


@pytest.mark.parametrize("padding", [0, 1])
def test_what_windows_scatter_is_added_up_before_it_is_scattered_unless_some_of_it_falls_outside(padding):
    how = {"window": (3, 3), "stride": (2, 2), "padding": ((padding, padding),) * 2}
    x, weights = symbol((4, 4, 7, 7)), symbol(ops.max_pool(symbol((4, 4, 7, 7)), **how).shape)
    slope = ops.pool_scatter(weights, ops.pool_argmax(x, **how), shape=x.shape, **how)
    graph = Graph((x, weights), (ops.sum(slope, axis=(0, 2, 3)), ops.sum(slope, axis=(0, 1))))
    form = Form(expand_graph(graph), frame({STATE: 2}, [None] * 2))
    sums = [node.inputs[0].op for node in form.nodes if node.op == "sum"]
    assert sums == ["pool_scatter" if padding else "input", "pool_scatter"]
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=node.shape).astype(node.dtype) for node in graph.inputs]
    for found, wanted in zip(
        NumbaBackend().lower(graph, {})(*arrays), interpret(graph, numpy_namespace())(*arrays), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_an_embedding_is_added_up_where_its_zeros_lie():
    table, indices = symbol((50, 8)), symbol((20,), "int32")
    (slope,) = gradient(ops.sum(ops.tanh(ops.take(table, indices, axis=0)), axis=(0, 1)), [table])
    found = schedule(Graph((table, indices), (table - slope * constant(0.1),)))
    (added,) = [group.core for group in found.groups if group.op == "scatter_add"]
    assert [whole for whole, _ in found.within.values()] == [added]


def test_a_step_keeps_intermediate_values_in_memory_for_one_sample():
    found = schedule(nets.convolutional(batch=20, filters=16, side=16).graph)
    assert {node.op for node in found.locals} == {"maximum", "pool_scatter", "convolution_input"}
    assert 0 < found.local_bytes < found.arena_bytes


def test_local_values_of_one_sample_do_not_overlap():
    found = schedule(nets.convolutional(batch=20, filters=16, side=16).graph)
    for region in set(found.regions.values()):
        mine = {
            node: start
            for node, start in found.locals.items()
            if found.regions[found.grouping.groups.of[node]] is region
        }
        ends = [(start, start + 4 * int(np.prod(node.shape[1:]))) for node, start in mine.items()]
        ordered = sorted(ends)
        assert all(a[1] <= b[0] for a, b in pairwise(ordered))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "window"), [((3, 4, 28, 28), (2, 2)), ((2, 3, 6, 2), (3, 2)), ((2, 3, 10), (2,)), ((2, 3, 9, 6), (3, 3))]
)
def test_windows_side_by_side_give_the_numbers_of_the_reference_also_for_nan_and_ties(dtype, shape, window):
    how = {"window": window, "stride": window, "padding": ((0, 0),) * len(window)}
    x, draw = symbol(shape, dtype), np.random.default_rng(0)
    value, place = ops.max_pool(x, **how), ops.pool_argmax(x, **how)
    slopes = symbol(value.shape, dtype)
    graph = Graph((x, slopes), (value, place, ops.pool_scatter(slopes, place, shape=shape, **how)))
    given = draw.integers(-3, 3, shape).astype(dtype)
    given[draw.random(shape) < 0.05], given[0, 0] = np.nan, -np.inf
    arrays = given, draw.integers(-9, 9, value.shape).astype(dtype)
    expected = interpret(graph, numpy_namespace())(*arrays)
    for found, wanted in zip(NumbaBackend().lower(graph, {})(*arrays), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
