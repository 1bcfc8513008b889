"""Convolution and pooling in portions of the batch, on strided operands, and on integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sigma_backend_numpy import NumpyBackend, windows
from sigma_kernel.graph import Graph, Node, interpret, numpy_namespace, ops, symbol
from sigma_testing import Sample, samples

WINDOWED = [sample for op in windows.KERNELS for sample in samples()[op]]


def check(function: Callable[..., Node], *arrays: np.ndarray) -> None:
    inputs = tuple(symbol(x.shape, x.dtype.name) for x in arrays)
    graph = Graph(inputs, (function(*inputs),))
    (found,), (wanted,) = NumpyBackend().lower(graph, {})(*arrays), interpret(graph, numpy_namespace())(*arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


@pytest.fixture
def tiny_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "PORTION", 2000)


@pytest.mark.usefixtures("tiny_portions")
@pytest.mark.parametrize("sample", WINDOWED, ids=str)
def test_processing_samples_in_portions_does_not_change_results(sample: Sample):
    (found,), (wanted,) = (
        run(*sample.arrays)
        for run in (NumpyBackend().lower(sample.graph(), {}), interpret(sample.graph(), numpy_namespace()))
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sample", WINDOWED, ids=str)
def test_operands_may_be_views(sample: Sample):
    def turned(*operands: Node) -> Node:
        around = (ops.permute(x, axes=tuple(reversed(range(len(x.shape))))) for x in operands)
        return getattr(ops, sample.op)(*around, **sample.attrs)

    check(turned, *(np.ascontiguousarray(x.transpose()) for x in sample.arrays))


@pytest.mark.parametrize("op", ["max_pool", "pool_argmax"])
def test_a_nan_counts_as_the_maximum_of_its_window(op):
    x = np.random.default_rng(0).normal(size=(3, 2, 6, 6)).astype("float32")
    x[0, 0, 3, 3] = x[2, 1, 0, 1] = np.nan
    x[1, 0, :2, :2] = -np.inf
    for sample in samples()[op][1:2]:
        check(lambda x, how=sample.attrs: getattr(ops, op)(x, **how), x)


def test_infinite_gradients_only_affect_their_index():
    how = {"window": (2,), "stride": (2,), "padding": ((0, 0),)}
    g, index = np.array([[[np.inf, 1.0]]]), np.array([[[1, 0]]], "int32")
    x, i = symbol(g.shape, "float64"), symbol(index.shape, "int32")
    graph = Graph((x, i), (ops.pool_scatter(x, i, shape=(1, 1, 4), **how),))
    assert NumpyBackend().lower(graph, {})(g, index)[0].tolist() == [[[0, np.inf, 1, 0]]]


def test_im2col_never_copies_the_whole_batch():
    x, w = symbol((100, 8, 28, 28)), symbol((16, 8, 3, 3))
    how = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    program = NumpyBackend().lower(Graph((x, w), (ops.convolution(x, w, **how),)), {})
    assert program.plan.arena_bytes <= windows.PORTION
