"""Nodes have the indices, operators and methods of NumPy's arrays, with the same results and differentiable."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph.node import symbol

X = np.random.default_rng(5).normal(size=(4, 5, 3))
KEYS = [
    0, -1, np.int64(2), ..., (), None, slice(None, None, -1), np.s_[1::2, ::-2], np.s_[..., 0], np.s_[None, ..., None],
    np.s_[:, None, 1], np.s_[1:3, ..., ::-1], np.s_[3:1], np.s_[10:2:-3], np.s_[-3:-1], np.s_[2, ::-1, None, 1],
    np.s_[[]], [3, 0, -1, 3], np.s_[:, [2, 0, -1]], np.s_[..., np.array([[0, 1], [2, 2]])], np.s_[::-1, [1, 2]],
    np.s_[[0, 1], None], np.s_[None, :, [1, 1], None], np.s_[:0, [0]],
    np.s_[0, [1, -1]], np.s_[[0], [1, 2]], np.s_[0, :, [1]], np.array([True, False, False, True]), True,
    np.s_[:, X[0] > 0], np.s_[::-1, None, 2:], np.s_[:, :0],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indices_select_what_they_select_from_an_array(key):
    found = f.evaluate(lambda x: x[key], X)
    assert found.shape == X[key].shape
    assert np.array_equal(found, X[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_the_slope_of_a_selection_counts_how_often_each_entry_is_selected(key):
    expected = np.zeros(X.shape)
    np.add.at(expected, key, 1.0)
    assert np.array_equal(f.gradient(lambda x: x[key].sum())(X), expected)


def test_a_node_selects_along_one_axis():
    places = np.array([[2, 0], [1, 1]], "int32")
    assert np.array_equal(f.evaluate(lambda x, i: x[i], X, places), X[places])
    assert np.array_equal(f.evaluate(lambda x, i: x[:, i], X, places), X[:, places])
    assert np.array_equal(f.evaluate(lambda x, i: x[:, i, :], X, places), X[:, places])
    assert np.array_equal(f.evaluate(lambda x, i: x[..., i], X, places), X[..., places])
    assert np.array_equal(f.evaluate(lambda x, i: x[..., i, :], X, places), X[..., places, :])


def test_a_slice_is_no_gather():
    assert symbol((4, 5))[1:, ::2].inputs[0].op == "slice"


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), [1], ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_reductions_agree_with_those_of_arrays(name, axis, keepdims):
    expected = getattr(X, name)(tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
    found = f.evaluate(lambda x: getattr(x, name)(axis, keepdims), X)
    assert found.shape == expected.shape
    assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T, lambda x: x.reshape(3, -1), lambda x: x.reshape((5, 12)), lambda x: x.astype("int32"),
        lambda x: x.astype(np.float32), abs, lambda x: x % 0.7, lambda x: 0.7 % x, lambda x: 2.0**x, lambda x: -x,
        lambda x: x.reshape(-1) @ np.arange(60.0), lambda x: x @ np.arange(3.0), lambda x: np.arange(5.0) @ x,
        lambda x: np.ones((2, 5)) @ x, lambda x: x @ [[1.0], [2.0], [3.0]], lambda x: x - [1, 2, 3],
        lambda x: (x > 0.1) & ~(x > 0.5) | (x < -1), lambda x: np.arange(3) >= x, lambda x: abs(x) ** np.arange(3),
        lambda x: sum(row[0] for row in x), lambda x: len(x) * x[0],
    ],
)  # fmt: skip
def test_operators_and_methods_agree_with_those_of_arrays(function):
    found, expected = f.evaluate(function, X), np.asarray(function(X))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.astype(float) == pytest.approx(expected.astype(float), rel=1e-14)


def test_functions_of_arrays_return_arrays_at_once():
    scores = np.array([1.0, 2.0, 4.0])
    assert f.softmax(scores) == pytest.approx(np.exp(scores) / np.exp(scores).sum(), rel=1e-15)
    assert isinstance(f.softmax(scores), np.ndarray)
    assert f.exp(np.arange(3)) == pytest.approx(np.exp(np.arange(3)), rel=1e-15)  # as in NumPy, integers become floats
    assert f.exp(np.float64(1.0)) == pytest.approx(np.e)
    assert f.add(np.float32([1]), np.float64([1])).dtype == np.float64
    assert f.take(np.eye(3, dtype="float32"), np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert f.where(np.array([True, False]), 1.0, 0.0).tolist() == [1.0, 0.0]
    assert f.one_hot(np.array([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert f.hits(np.eye(3), np.array([0, 1, 1])).tolist() == [True, True, False]
    assert f.norm(np.array([3.0, 4.0])) == 5.0
    assert f.stack(np.ones(2), np.zeros(2)).tolist() == [[1, 1], [0, 0]]


def test_an_array_computed_at_once_can_be_written_to():
    found = f.sub(np.ones(3), 0.0)
    found[0] = 7.0
    assert found.tolist() == [7.0, 1.0, 1.0]


def test_functions_of_nodes_and_arrays_return_nodes():
    x = symbol((4, 3))
    assert f.take(np.eye(3), symbol((5,), "int32")).shape == (5, 3)
    assert f.clip(x, np.zeros(3), 1.0).spec == x.spec
    assert f.where(np.ones(3, bool), x, 0.0).spec == x.spec
