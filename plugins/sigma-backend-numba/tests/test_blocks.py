"""Loops that add many numbers are cut into blocks: in every form of nest, the sums are those of exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, symbol

Sums = dict[str, tuple[tuple[int, ...], Callable[[Node], Node], Callable[[np.ndarray], np.ndarray]]]


def channels(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


# name: (the shape of the operand, the sum, and its terms: a row for each result)
SUMS: Sums = {
    "columns": ((3001, 5), lambda x: f.sum(x, 0), np.transpose),
    "columns of 2,048 rows": ((2048, 3), lambda x: f.sum(x, 0), np.transpose),
    "columns of every other row": ((5000, 3), lambda x: f.sum(x[::2], 0), lambda x: x[::2].T),
    "columns of a product of values": ((1500, 4), lambda x: f.sum(x * x, 0), lambda x: (x * x).T),
    "rows": ((3, 9001), lambda x: f.sum(x, 1), lambda x: x),
    "rows of several loops": (
        (3, 90, 160),
        lambda x: f.sum(x[:, ::2, ::2], (1, 2)),
        lambda x: x[:, ::2, ::2].reshape(3, -1),
    ),
    "everything": ((4100, 31), f.sum, lambda x: x.reshape(1, -1)),
    "one row": ((8200,), f.sum, lambda x: x.reshape(1, -1)),
    "channels of images": ((9, 3, 40, 50), lambda x: f.sum(x, (0, 2, 3)), channels),
    "channels of a large image": ((2, 3, 70, 90), lambda x: f.sum(x, (0, 2, 3)), channels),
    "channels that come last": ((20, 20, 20, 3), lambda x: f.sum(x, (0, 1, 2)), lambda x: x.reshape(-1, 3).T),
    "axes that are apart": (
        (90, 2, 40, 3),
        lambda x: f.sum(x, (0, 2)),
        lambda x: x.transpose(1, 3, 0, 2).reshape(6, -1),
    ),
    "an axis between others": ((2, 2500, 3), lambda x: f.sum(x, 1), lambda x: x.swapaxes(1, 2).reshape(6, -1)),
}


def computed(threads: int, arrays: list[np.ndarray], sums: Callable[[list[Node]], list[Node]]) -> list[np.ndarray]:
    inputs = [symbol(x.shape, str(x.dtype)) for x in arrays]
    backend = NumbaBackend(threads=threads)
    return [backend.to_host(x) for x in backend.lower(Graph(tuple(inputs), tuple(sums(inputs))), {})(*arrays)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_in_blocks_are_exact_within_the_bound_on_any_number_of_threads(dtype: str) -> None:
    draw = np.random.default_rng(0)
    arrays = [draw.random(shape).astype(dtype) for shape, _, _ in SUMS.values()]
    found, others = (
        computed(threads, arrays, lambda inputs: [row[1](x) for row, x in zip(SUMS.values(), inputs, strict=True)])
        for threads in (1, 2)
    )
    for (name, (_, _, terms)), x, sums, again in zip(SUMS.items(), arrays, found, others, strict=True):
        exact = [math.fsum(row) for row in terms(x).tolist()]
        np.testing.assert_allclose(sums.reshape(-1), exact, rtol=40 * np.finfo(dtype).eps, err_msg=name)
        np.testing.assert_array_equal(sums, again, err_msg=name)


def test_reductions_that_share_a_nest_with_sums_in_blocks_are_right() -> None:
    draw = np.random.default_rng(1)
    arrays = [draw.random((2500, 6), np.float32), draw.random((3, 9001), np.float32)]

    def reductions(given: list[Node]) -> list[Node]:
        x, y = given
        folds = [f.sum(x, 0), f.max(x, 0), f.sum(f.square(x), 0)]
        return [*folds, f.softmax(y), f.variance(y, 1), f.max(y, 1)]

    x, y = (array.astype("f8") for array in arrays)
    likely = np.exp(y) / np.exp(y).sum(1, keepdims=True)
    wanted = [x.sum(0), x.max(0), np.square(x).sum(0), likely, y.var(1), y.max(1)]
    for mine, other in zip(computed(1, arrays, reductions), wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=5e-6)


def test_sums_of_infinities_and_of_integers_stay_theirs() -> None:
    x = np.ones((5000, 4), np.float32)
    x[4321, 1], x[7, 2], x[4999, 3] = np.inf, np.nan, -np.inf
    largest = np.full((5000, 2), 2**31 - 1, np.int32)
    found = computed(1, [x, largest], lambda xs: [f.sum(xs[0], 0), f.sum(xs[1], 0)])
    np.testing.assert_array_equal(found[0], [5000, np.inf, np.nan, -np.inf])
    np.testing.assert_array_equal(found[1], np.add.reduce(largest, 0, np.int32))
