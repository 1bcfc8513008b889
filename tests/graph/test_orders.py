"""Orders, running sums and products agree with Python's own, element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ops
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, Spec, symbol, trace
from sigma_kernel.graph.rewriting import rewrite
from sigma_testing.cases import samples

NUMPY = numpy_namespace()
X = np.array([[3.0, 1.0, 3.0, 0.5], [np.nan, -np.inf, np.inf, np.nan], [0.0, -0.0, 0.0, -1.0]])


def every(*names):
    return pytest.mark.parametrize("sample", [s for name in names for s in samples()[name]], ids=str)


def in_order(row, descending):
    """Return places in the order of Python's own sort, which is stable; NaN is the greatest."""

    def key(place):
        value = float(row[place])
        return (not math.isnan(value), -value) if descending else (math.isnan(value), value)

    return sorted(range(len(row)), key=lambda place: (key(place)[0], 0.0 if math.isnan(row[place]) else key(place)[1]))


def along(function, x, axis):
    return np.apply_along_axis(function, axis, x) if x.size else x


@every("argsort", "sort")
def test_orders_are_those_of_pythons_sort(sample):
    (x,), axis, descending = sample.arrays, sample.attrs["axis"], sample.attrs["descending"]
    places = along(lambda row: in_order(row, descending), x, axis)
    (result,) = interpret(sample.graph(), NUMPY)(x)
    np.testing.assert_array_equal(result, places if sample.op == "argsort" else np.take_along_axis(x, places, axis))


@pytest.mark.parametrize("descending", [False, True])
def test_equal_entries_stay_in_order_and_nan_is_the_greatest(descending):
    places = np.array([in_order(row, descending) for row in X])
    np.testing.assert_array_equal(f.argsort(X, descending=descending), places)
    np.testing.assert_array_equal(f.sort(X, descending=descending), np.take_along_axis(X, places, 1))
    assert f.argsort(X).dtype == np.int32
    values, indices = f.top_k(X, 2, largest=descending)
    np.testing.assert_array_equal(indices, places[:, :2])
    np.testing.assert_array_equal(values, np.take_along_axis(X, places, 1)[:, :2])


def test_the_largest_entries_along_any_axis():
    x = np.random.default_rng(0).normal(size=(3, 5, 2))
    values, indices = f.top_k(x, 3, axis=1)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(x, indices, 1), values)
    none = f.top_k(x, 0, axis=0)
    assert [y.shape for y in none] == [(0, 5, 2), (0, 5, 2)]
    with pytest.raises(
        SigmaGraphError, match=r"top_k\(\(3, 5, 2\)\): k must be from 0 to 2, the side of axis 2 \(got 3\)"
    ):
        f.top_k(x, 3)


@every("cumsum")
def test_running_sums_are_those_of_a_loop(sample):
    (x,), axis = sample.arrays, sample.attrs["axis"]
    expected, total = np.zeros_like(x), np.zeros_like(np.take(x, 0, axis))
    for k in reversed(range(x.shape[axis])) if sample.attrs["reverse"] else range(x.shape[axis]):
        total = total + np.take(x, k, axis)
        np.moveaxis(expected, axis, 0)[k] = total
    np.testing.assert_array_equal(interpret(sample.graph(), NUMPY)(x)[0], expected)


@every("prod")
def test_products_are_those_of_exact_numbers(sample):
    (x,), axis = sample.arrays, sample.attrs["axis"]
    exact = np.array([math.prod(map(float if x.dtype.kind == "f" else int, row)) for row in rows(x, axis)])
    expected = (exact % 2**32 if x.dtype == np.uint32 else exact).astype(x.dtype)
    np.testing.assert_allclose(interpret(sample.graph(), NUMPY)(x)[0].reshape(-1), expected.reshape(-1), rtol=1e-14)


def rows(x, axis):
    kept = [i for i in range(x.ndim) if i not in axis]
    sides = math.prod(x.shape[i] for i in kept)
    return x.transpose([*kept, *axis]).reshape(sides, -1)


def test_a_product_over_nothing_is_one_and_axes_may_be_kept():
    assert f.prod(np.ones((0, 3)), 0).tolist() == [1, 1, 1]
    assert f.prod(np.array([2.0, 3.0])) == 6.0
    assert f.prod(np.full((2, 3), 2.0), (0, 1), keepdims=True).tolist() == [[64.0]]
    assert f.prod(np.full((2, 3), 2.0), -1).tolist() == [8.0, 8.0]
    assert f.prod(np.array([2**31, 3], "uint32")).tolist() == 2**31


def test_the_gradient_of_a_product_is_the_product_of_the_others():
    x = np.array([0.0, 2.0, np.inf, -1.5, 4.0])
    others = [math.prod(float(y) for k, y in enumerate(x) if k != i) for i in range(5)]
    np.testing.assert_array_equal(f.gradient(f.prod)(x), others)


def test_an_identity_has_ones_on_its_diagonal():
    assert f.evaluate(lambda: f.eye(3)).tolist() == np.eye(3).tolist()
    for rows, columns, offset in ((2, 4, 0), (4, 2, 1), (3, 3, -2), (0, 3, 0), (1, 1, 5)):
        result = f.evaluate(lambda r=rows, c=columns, k=offset: f.eye(r, c, k, "int64"))
        np.testing.assert_array_equal(result, np.eye(rows, columns, offset, np.int64))
        assert result.dtype == np.int64


def test_sorting_the_same_entries_twice_sorts_once():
    def both(x):
        values, places = f.top_k(x, 2)
        slope = f.gradient(lambda x: f.sum(f.sort(x, descending=True) ** 3))(x)
        return [values, places, f.sort(x, descending=True), slope]

    graph = rewrite(trace(both, Spec((4, 5))))
    assert [node.op for node in graph].count("argsort") == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ops.argsort(x, axis=2, descending=False), r"argsort\(\(2, 3\)\): there is no axis 2"),
        (lambda x: ops.cumsum(x, axis=-1, reverse=False), "there is no axis -1"),
        (lambda x: ops.sort(x, axis=0), "missing 1 required keyword-only argument: 'descending'"),
        (lambda x: f.sort(x, 4), r"axis 4 of shape \(2, 3\)"),
        (lambda x: f.prod(x, 2), r"axis 2 of shape \(2, 3\)"),
        (lambda x: f.top_k(x, 1.5), "top_k: k is 1.5, and must be a whole number."),
    ],
)
def test_wrong_axes_and_counts_are_refused(call, message):
    with pytest.raises(SigmaGraphError, match=message):
        call(symbol((2, 3)))


def test_columns_of_a_loop_are_sorted_in_its_body():
    def body(carry, x):
        return [f.sort(carry + x)], [f.cumsum(carry)]

    x = np.random.default_rng(1).normal(size=(4, 3))
    graph = trace(lambda x: [*f.scan(body, [x[0]], [x])[0], *f.scan(body, [x[0]], [x])[1]], Spec(x.shape, "float64"))
    last, sums = interpret(Graph(graph.inputs, graph.outputs), NUMPY)(x)
    carry, before = x[0], []
    for row in x:
        before.append(np.cumsum(carry))
        carry = np.sort(carry + row)
    np.testing.assert_allclose(last, carry, rtol=1e-14)
    np.testing.assert_allclose(sums, before, rtol=1e-14)
