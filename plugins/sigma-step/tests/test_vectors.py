"""Gradients of parameters in one vector for each dtype."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.graph import Graph, interpret, numpy_namespace, symbol
from sigma_kernel.graph.node import Spec
from sigma_step.vectors import VectorLayout

SPECS = {
    "1-dense.weights": Spec((2, 3), "float32"),
    "1-dense.scale": Spec((), "float64"),
    "1-dense.biases": Spec((3,), "float32"),
    "2-dense.weights": Spec((3, 1, 2), "float64"),
    "2-dense.none": Spec((0, 4), "float32"),
}


@pytest.fixture
def gradients() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {address: draw.normal(size=spec.shape).astype(spec.dtype) for address, spec in SPECS.items()}


def test_gradients_lie_one_after_another_by_dtype(gradients: dict[str, np.ndarray]) -> None:
    nodes = {address: symbol(spec.shape, spec.dtype) for address, spec in SPECS.items()}
    vectors = VectorLayout(SPECS).join(nodes)
    found = interpret(Graph(tuple(nodes.values()), tuple(vectors.values())), numpy_namespace())(*gradients.values())
    for (dtype, vector), values in zip(vectors.items(), found, strict=True):
        own = [values.ravel() for values in gradients.values() if values.dtype == dtype]
        assert vector.dtype == dtype
        np.testing.assert_array_equal(values, np.concatenate(own))


def test_each_gradient_is_found_in_its_vector(gradients: dict[str, np.ndarray]) -> None:
    layout = VectorLayout(SPECS)
    vectors = {
        dtype: np.concatenate([x.ravel() for x in gradients.values() if x.dtype == dtype]) for dtype in layout.sizes
    }
    nodes = {dtype: symbol(vector.shape, dtype) for dtype, vector in vectors.items()}
    parts = Graph(tuple(nodes.values()), tuple(layout.part(nodes, address) for address in SPECS))
    computed = interpret(parts, numpy_namespace())(*vectors.values())
    for (address, view), part in zip(layout.split(vectors).items(), computed, strict=True):
        assert view.shape == part.shape == SPECS[address].shape
        assert view.dtype == part.dtype == SPECS[address].dtype
        np.testing.assert_array_equal(view, gradients[address])
        np.testing.assert_array_equal(part, gradients[address])
        assert np.shares_memory(view, vectors[view.dtype.name]) or not view.size


def test_a_change_of_a_view_is_one_of_the_vector() -> None:
    layout = VectorLayout(SPECS)
    vectors = {dtype: np.zeros(n, dtype) for dtype, n in layout.sizes.items()}
    layout.split(vectors)["1-dense.biases"][...] = 1
    assert vectors["float32"].tolist() == [0] * 6 + [1] * 3
    assert not vectors["float64"].any()
