"""Sums of NumPy's arrays, over any axes, in any layout: against math.fsum."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.sums import TERMS, sum_axes

ROWS = 1 << 17
DRAW = np.random.default_rng(0).random((ROWS, 6), np.float32)
TENTHS = np.full((ROWS, 6), 0.1, np.float32)  # added one after another, they are all rounded in one direction

# name: (an array made of another one, the axes)
LAYOUTS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], tuple[int, ...]]] = {
    "rows": (lambda x: x, (0,)),
    "rows of which some are left over": (lambda x: x[:-77], (0,)),
    "backwards": (lambda x: x[::-1], (0,)),
    "some columns": (lambda x: x[:, 1:4], (0,)),
    "columns of a transposed array": (np.transpose, (1,)),
    "rows of matrices": (lambda x: x.reshape(4, -1, 6), (1,)),
    "two leading axes": (lambda x: x.reshape(512, -1, 6), (0, 1)),
    "many short axes": (lambda x: x.reshape(64, 64, 32, 6), (0, 1, 2)),
    "two axes that are apart": (lambda x: x.reshape(-1, 3, 4), (0, 2)),
    "channels that come last": (lambda x: x.reshape(32, 64, 64, 6).transpose(0, 3, 1, 2), (0, 2, 3)),
    "an axis between others": (lambda x: x.reshape(2, -1, 2, 3), (1, 3)),
    "everything": (lambda x: x, (0, 1)),
    "everything, transposed": (np.transpose, (0, 1)),
    "one number, repeated": (lambda x: np.broadcast_to(x[0, 0], (ROWS, 2)), (0,)),
    "float64": (lambda x: x.astype(np.float64), (0,)),
}


@pytest.mark.parametrize("rows", [DRAW, TENTHS], ids=["draw", "tenths"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_sum_of_many_rows_rounds_as_often_as_one_of_1024(name: str, rows: np.ndarray) -> None:
    make, axis = LAYOUTS[name]
    x = make(rows)
    found = sum_axes(x, axis)
    assert (found.dtype, found.ndim) == (x.dtype, x.ndim)
    terms = np.moveaxis(x, axis, range(len(axis))).reshape(-1, found.size)
    exact = np.array([math.fsum(column) for column in terms.T.tolist()])
    unit = float(np.finfo(x.dtype).eps) / 2
    assert (np.abs(found.reshape(-1) - exact) <= TERMS * unit * exact).all()  # all terms are positive


def test_a_sum_goes_on_beyond_the_whole_numbers_of_its_dtype() -> None:
    ones = np.broadcast_to(np.float32(1), (1 << 25, 1))
    assert sum_axes(ones, (0,)).tolist() == [[1 << 25]]


@pytest.mark.parametrize("shape", [(1024, 7), (16, 64, 3), (3, 5000), (0, 4), (5000, 0)])
def test_a_sum_of_few_rows_has_the_bits_of_numpy(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).random(shape, np.float32)
    axis = tuple(range(len(shape) - 1)) if shape[0] != 3 else (1,)
    np.testing.assert_array_equal(sum_axes(x, axis), np.add.reduce(x, axis, keepdims=True))


def test_a_sum_is_written_into_a_given_array() -> None:
    x, out = DRAW.reshape(64, 64, 32, 6), np.zeros((1, 1, 1, 6), np.float32)
    assert sum_axes(x, (0, 1, 2), out) is out
    np.testing.assert_array_equal(out, sum_axes(x, (0, 1, 2)))


def test_infinities_and_nan_reach_their_column_only() -> None:
    x = np.ones((5000, 4), np.float32)
    x[4321, 1], x[7, 2], x[4999, 3] = np.inf, np.nan, -np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(sum_axes(x, (0,)), [[5000, np.inf, np.nan, -np.inf]])


def test_integers_wrap_as_in_numpy() -> None:
    x = np.full((5000, 2), 2**31 - 1, np.int32)
    np.testing.assert_array_equal(sum_axes(x, (0,)), np.add.reduce(x, (0,), np.int32, keepdims=True))
    assert sum_axes(x, (0,)).dtype == np.int32


def test_the_reference_adds_in_the_same_parts() -> None:
    space = numpy_namespace()
    np.testing.assert_array_equal(space.sum(np, DRAW, (0,)), sum_axes(DRAW, (0,)))
