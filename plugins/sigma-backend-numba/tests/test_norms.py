"""Norms over the batch: values that are repeated instead of stored, and sums that share a pass over memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute.program import graph_job
from sigma_backend_numba.lower.canonical import STATE, Form, expand_graph, frame
from sigma_backend_numba.plan.fusion import Grouping
from sigma_backend_numba.plan.schedule import GroupSchedule
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, gradient, interpret, numpy_namespace, ops, symbol

SHAPE = (6, 5, 9, 4)


def normalised(x: Node, axes: tuple[int, ...], epsilon: float = 1e-3) -> Node:
    centred = x - f.mean(x, axes, keepdims=True)
    return centred / f.sqrt(f.mean(f.square(centred), axes, keepdims=True) + epsilon)


def training(shape: tuple[int, ...], axes: tuple[int, ...], residual: bool = False, dtype: str = "float32") -> Graph:
    """Return the graph of a convolution, a norm with scale and shift, a relu, and all gradients."""
    wide = tuple(1 if k in axes else side for k, side in enumerate(shape))
    x, kernel = symbol(shape, dtype), symbol((shape[1], shape[1], 3, 3), dtype)
    scale, shift, weights = symbol(wide, dtype), symbol(wide, dtype), symbol(shape, dtype)
    z = ops.convolution(x, kernel, stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1)
    y = normalised(z, axes) * scale + shift
    y = f.relu(y + x if residual else y)
    given = [x, kernel, scale, shift]
    return Graph((*given, weights), (y, *gradient(f.sum(y * weights), given)))


def drawn(graph: Graph) -> list[Any]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(x.shape).astype(x.dtype) for x in graph.inputs]


def schedule(graph: Graph) -> GroupSchedule:
    form = Form(expand_graph(graph), frame({STATE: len(graph.inputs)}, [None] * len(graph.outputs)))
    return GroupSchedule(form, Grouping(form))


@pytest.mark.parametrize(
    ("samples", "axes", "residual", "dtype"),
    [
        (6, (0, 2, 3), True, "float32"),
        (6, (0, 2, 3), False, "float64"),
        (1, (0, 2, 3), False, "float32"),
        (6, (2, 3), True, "float32"),
        (6, (1, 2, 3), False, "float32"),
        (6, (0,), True, "float32"),
        (6, (0, 1), False, "float32"),
    ],
)
def test_a_norm_over_any_axes_and_its_gradients_equal_the_reference(
    samples: int, axes: tuple[int, ...], residual: bool, dtype: str
) -> None:
    graph = training((samples, *SHAPE[1:]), axes, residual, dtype)
    arrays = drawn(graph)
    expected = interpret(graph, numpy_namespace())(*arrays)
    exact = 1e-4 if dtype == "float32" else 1e-12
    for found, wanted in zip(NumbaBackend().lower(graph, {})(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=exact * (1 + np.abs(wanted).max()))


def test_a_norm_keeps_only_what_it_reads_and_its_result_in_memory() -> None:
    found = schedule(training(SHAPE, (0, 2, 3)))
    large = [node for node in found.stored if node.shape == SHAPE and node not in found.delivered]
    assert sorted(node.op for node in large) == ["add", "convolution", "where"]  # and the gradients of both


def test_sums_over_the_same_axes_share_a_pass_unless_one_needs_the_other() -> None:
    folds = [group for group in schedule(training(SHAPE, (0, 2, 3))).groups if group.kind == "fold"]
    batch = [len(group.cores) for group in folds if group.cores[0].shape == (1, SHAPE[1], 1, 1)]
    assert sorted(batch) == [1, 1, 1, 3]  # mean; variance; gradient of the root; those of scale, shift and mean


def test_the_number_of_threads_changes_no_bit_of_a_norm() -> None:
    graph = training((24, 16, 12, 12), (0, 2, 3), residual=True)
    arrays = drawn(graph)
    one, two = (NumbaBackend(threads=count).lower(graph, {})(*arrays) for count in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_number_that_is_not_finite_reaches_its_own_feature_only(value: float) -> None:
    x = symbol(SHAPE)
    graph = Graph((x,), (normalised(x, (0, 2, 3)), ops.sum(normalised(x, (0, 2, 3)) * x, axis=(0, 2, 3))))
    (array,) = drawn(graph)
    array[2, 1, 3, 3] = value
    expected = interpret(graph, numpy_namespace())(array)
    for found, wanted in zip(NumbaBackend().lower(graph, {})(array), expected, strict=True):
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        assert np.isfinite(np.delete(found, 1, axis=1)).all()


def test_a_quotient_by_a_root_of_zero_is_not_finite_and_one_by_a_large_root_is_not_zero() -> None:
    x, y = symbol((4, 5)), symbol((4, 1))
    graph = Graph((x, y), (x / f.sqrt(y),))
    arrays = [np.array([[0, 1, -1, np.inf, 3e38]] * 4, np.float32), np.array([[0], [3e38], [1e-37], [np.inf]], "f4")]
    with np.errstate(all="ignore"):
        (wanted,) = interpret(graph, numpy_namespace())(*arrays)
    np.testing.assert_allclose(NumbaBackend().lower(graph, {})(*arrays)[0], wanted, rtol=1e-6)


def test_a_repeated_value_of_a_transpose_lies_in_memory_where_both_orders_read_it() -> None:
    x, y = symbol((7, 7)), symbol((7, 1))
    part = x - ops.sum(x, axis=(0,)) * 0.1  # not in the group of the sum, and read in two orders by one nest
    value = ops.exp(part * 0.1) + ops.permute(part, axes=(1, 0)) * y
    graph = Graph((x, y), (value, ops.sum(part * part, axis=(0,))))
    arrays = drawn(graph)
    for found, wanted in zip(
        NumbaBackend().lower(graph, {})(*arrays), interpret(graph, numpy_namespace())(*arrays), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_values_that_are_read_as_they_are_and_transposed_are_those_of_the_reference() -> None:
    """A nest that needs a repeated value with two maps reads it from memory, whatever the others do."""
    x, y, z = symbol((2, 2, 2)), symbol((2, 2)), symbol((2, 2))
    p, q, picture = symbol((2, 2, 2)), symbol((2, 2, 2)), symbol((2, 2, 2))
    first = -f.sum(x, (0,))
    second = y * ((first - f.permute(first, (1, 0))) * 0.25) + z
    third = -(second + f.permute(-second, (1, 0)))
    turned = f.permute(f.stretch(third, (2, 2, 2)), (2, 1, 0))
    fourth = f.permute(-(turned * p) * q + f.permute(turned, (1, 0, 2)), (0, 2, 1))
    window = {"stride": (2,), "padding": ((0, 0),), "window": (2,)}
    found = ops.pool_select(fourth, ops.pool_argmax(picture, **window), **window)
    graph = Graph((x, y, z, p, q, picture), (found,))
    arrays = drawn(graph)
    computed = NumbaBackend(threads=1).lower(graph, {})(*arrays)
    for mine, wanted in zip(computed, interpret(graph, numpy_namespace())(*arrays), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 203])
@pytest.mark.parametrize("columns", [1, 5, 16, 83])
def test_folds_of_any_number_of_rows_equal_those_of_numpy(rows: int, columns: int) -> None:
    x, y, whole = symbol((rows, columns)), symbol((rows, columns)), symbol((3, rows, columns), "int32")
    totals = (f.sum(x * y, 0), f.max(x, 0), f.sum(x * x, 0), f.sum(whole, (0, 1)))
    graph = Graph((x, y, whole), totals)
    draw = np.random.default_rng(rows * columns)
    a, b = draw.standard_normal((2, rows, columns)).astype(np.float32)
    c = draw.integers(-99, 99, (3, rows, columns)).astype(np.int32)
    found = NumbaBackend().lower(graph, {})(a, b, c)
    wide = a.astype(np.float64)
    for value, wanted in zip(found, ((wide * b).sum(0), a.max(0), (wide * wide).sum(0), c.sum((0, 1))), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5 * rows)


@pytest.mark.parametrize(("side", "pieces"), [(32, 4), (2, 1)])
def test_sums_over_large_channels_are_cut_between_few_of_them(side: int, pieces: int) -> None:
    x = symbol((65536 // side**2, 16, side, side))
    graph = Graph((x,), (ops.sum(x, axis=(0, 2, 3)),))
    assert source(graph_job(graph, {})).threads == pieces
