"""Kernels whose method differs from the meaning: large arrays, repeated rows, strided operands."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from sigma_backend_numpy import NumpyBackend
from sigma_backend_numpy.kernels import CHUNK
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import Graph, Node, constant, interpret, numpy_namespace, ops, symbol

DRAW = np.random.default_rng(0)
LARGE = (3, CHUNK - 1)


def both(function: Callable[..., Node], *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of the backend and of the reference for a function."""
    inputs = tuple(symbol(x.shape, x.dtype.name) for x in arrays)
    graph = Graph(inputs, (function(*inputs),))
    return NumpyBackend().lower(graph, {})(*arrays)[0], interpret(graph, numpy_namespace())(*arrays)[0]


def assert_same_bits(function: Callable[..., Node], *arrays: np.ndarray) -> None:
    found, wanted = both(function, *arrays)
    assert found.dtype == wanted.dtype
    assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers of a dtype, including special values."""
    drawn = DRAW.integers(0, 2 if dtype == "bool" else 1000, shape).astype(dtype)
    if dtype.startswith("float"):
        drawn.reshape(-1)[:5] = np.nan, np.inf, -np.inf, -0.0, 1e-40
    return drawn


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32", "bool"])
def test_where_by_bits_equals_where_by_values(dtype):
    condition, x, y = DRAW.random(LARGE) > 0.5, values(LARGE, dtype), values(LARGE, dtype)
    scalar = np.array(3.7 if dtype.startswith("float") else 1, dtype)
    assert_same_bits(ops.where, condition, x, y)
    assert_same_bits(ops.where, condition, x, scalar)
    assert_same_bits(ops.where, condition, scalar, y)
    assert_same_bits(lambda c, x: ops.where(c, x, constant(0, dtype)), condition, x)
    assert_same_bits(lambda c, y: ops.where(c, constant(0, dtype), y), condition, y)
    assert_same_bits(ops.where, condition[:1], x, y)
    assert_same_bits(lambda c, x, y: ops.where(c, ops.permute(x, axes=(1, 0)), y), condition, x.T.copy(), y)


def test_a_negative_zero_is_not_simplified_like_a_zero():
    condition, x = np.zeros(LARGE, bool), np.ones(LARGE, "float32")
    found, _ = both(lambda c, x: ops.where(c, x, -0.0), condition, x)
    assert np.signbit(found).all()


@pytest.mark.parametrize("place", [1, 2], ids=["first", "second"])
def test_selecting_in_place_reads_before_it_writes(place):
    arrays = [DRAW.random(LARGE) > 0.5, values(LARGE, "float32"), values(LARGE, "float32")]
    inputs = tuple(symbol(x.shape, x.dtype.name) for x in arrays)
    call = NumpyBackend().lower(Graph(inputs, (ops.where(*inputs),)), {0: place})
    wanted = np.where(*arrays)
    (found,) = call(*arrays)
    assert found is arrays[place]
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erf_is_computed_in_chunks(dtype):
    x = np.linspace(-4, 4, 2 * CHUNK + 5).astype(dtype)
    found, _ = both(ops.erf, x)
    np.testing.assert_allclose(found, [math.erf(v) for v in x], rtol=4e-7 if dtype == "float32" else 1e-15)


def test_erf_reads_operands_that_are_not_contiguous():
    x = DRAW.normal(size=(5, 7))
    assert_same_bits(lambda x: ops.erf(ops.permute(x, axes=(1, 0))), x)


# -- gathering ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_updates_with_the_same_index_add_up(axis):
    x, places = np.zeros((6, 6, 6)), DRAW.integers(0, 6, (40, 3)).astype("int32")
    updates = DRAW.normal(size=(*x.shape[:axis], 40, 3, *x.shape[axis + 1 :]))
    found, wanted = both(lambda *xs: ops.scatter_add(*xs, axis=axis), x, places, updates)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_scatter_add_without_indices_changes_nothing():
    x = DRAW.normal(size=(4, 3))
    assert_same_bits(lambda *xs: ops.scatter_add(*xs, axis=0), x, np.zeros(0, "int32"), np.zeros((0, 3)))


@pytest.mark.parametrize("place", [-1, 4])
def test_an_index_outside_its_axis_is_refused(place):
    places = np.array([0, place, 2], "int32")
    with pytest.raises(SigmaGraphError, match=r"take: indices must be from 0 to 3 \(got .*\). Check the labels"):
        both(lambda x, i: ops.take(x, i, axis=0), np.zeros((4, 2)), places)
    with pytest.raises(SigmaGraphError, match="scatter_add: indices must be"):
        both(lambda x, i, u: ops.scatter_add(x, i, u, axis=0), np.zeros((4, 2)), places, np.zeros((3, 2)))


# -- products ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: ops.permute(x, axes=(1, 0)) @ ops.permute(y, axes=(1, 0)),
        lambda x, y: ops.stretch(ops.sum(x, axis=(1,)), shape=(5, 7)) @ y,
        lambda x, y: ops.slice(x, start=(0, 0), stop=(5, 5), step=(1, 2))
        @ ops.slice(y, start=(1, 0), stop=(7, 5), step=(2, 1)),
        lambda x, y: ops.stop(ops.stretch(ops.slice(x, start=(0, 0), stop=(5, 1), step=(1, 1)), shape=(5, 7))) @ y,
    ],
    ids=["turned", "stretched", "sliced", "stopped"],
)  # fmt: skip
def test_products_of_views_are_products_of_their_values(function):
    found, wanted = both(function, DRAW.normal(size=(5, 7)), DRAW.normal(size=(7, 5)))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


SHARED = [((2, 3, 4, 5), (5, 6)), ((2, 3, 4, 5), (1, 1, 5, 6)), ((2, 1, 4, 5), (1, 3, 5, 6))]


@pytest.mark.parametrize(("x", "y"), SHARED)
def test_a_matrix_shared_by_a_batch_is_one_large_product(x, y):
    found, wanted = both(ops.matmul, DRAW.normal(size=x), DRAW.normal(size=y))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
