"""Multiply, Mean, Maximum and Dot."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace
from sigma_layers import Dense, Dot, Input, Maximum, Mean, Multiply, Reshape
from sigma_testing import LayerSuite, by_name, trace_layer

TWO_BY_THREE = Spec((2, 3))


class TestMultiply(LayerSuite):
    inputs = (TWO_BY_THREE, TWO_BY_THREE, TWO_BY_THREE)

    def make(self):
        return Multiply()


class TestMultiplyByAGate(LayerSuite):
    inputs = (Spec((2, 3, 4)), Spec((2, 1, 1)))

    def make(self):
        return Multiply()


class TestMean(LayerSuite):
    inputs = (TWO_BY_THREE, TWO_BY_THREE, TWO_BY_THREE)

    def make(self):
        return Mean()


class TestMaximum(LayerSuite):
    inputs = (TWO_BY_THREE, TWO_BY_THREE, TWO_BY_THREE)

    def make(self):
        return Maximum()


class TestDot(LayerSuite):
    inputs = (Spec((4,)), Spec((4,)))

    def make(self):
        return Dot()


class TestDotOfSequences(LayerSuite):
    inputs = (Spec((3, 2, 4)), Spec((3, 5)))

    def make(self):
        return Dot(axis=1)


class TestDotOfDirections(LayerSuite):
    inputs = (Spec((3, 4)), Spec((2, 4)))
    scaled = slice(0)  # a cosine jumps at a vector of zeros

    def make(self):
        return Dot(cosine=True)


def run(layer, *arrays):
    return trace_layer(layer, [Spec(x.shape, str(x.dtype)) for x in arrays], training=True).run(arrays)[0]


X, Y, Z = np.random.default_rng(0).normal(size=(3, 5, 2, 3))


# -- what they compute -------------------------------------------------------------------------------------------------
def test_branches_are_merged_element_by_element():
    np.testing.assert_array_equal(run(Multiply(), X, Y, Z), X * Y * Z)
    np.testing.assert_allclose(run(Mean(), X, Y, Z), (X + Y + Z) / 3, rtol=1e-12)
    np.testing.assert_array_equal(run(Maximum(), X, Y, Z), np.maximum(np.maximum(X, Y), Z))


@pytest.mark.parametrize("make", [Multiply, Mean, Maximum])
def test_a_single_branch_is_returned_as_it_is(make):
    np.testing.assert_array_equal(run(make(), X), X)


def test_a_gate_with_sides_of_one_scales_channels():
    gate = Y[:, :, :1]
    np.testing.assert_array_equal(run(Multiply(), X, gate), X * gate)
    np.testing.assert_array_equal(run(Multiply(), gate, X), X * gate)


def test_equal_maxima_share_the_gradient_evenly():
    one = np.ones((1, 2))
    it = trace_layer(Maximum(), [Spec((1, 2), "float64")] * 3, training=True)
    slopes = gradient(it.output.sum(), list(it.graph.inputs))
    run = interpret(Graph(it.graph.inputs, tuple(slopes)), numpy_namespace())
    assert [x.tolist() for x in run(one, one, one * 0)] == [[[0.5, 0.5]], [[0.5, 0.5]], [[0.0, 0.0]]]
    assert [x.tolist() for x in run(one, one, one)] == [[[1 / 3, 1 / 3]]] * 3


def test_a_maximum_with_nan_is_nan():
    assert np.isnan(run(Maximum(), X, np.full_like(X, np.nan))).all()


def test_vectors_have_a_dot_product_and_matrices_all_of_their_rows():
    np.testing.assert_allclose(run(Dot(), X[:, 0], Y[:, 0]), (X[:, 0] * Y[:, 0]).sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(run(Dot(), X, Y[:, :1]), np.einsum("nai,nbi->nab", X, Y[:, :1]), rtol=1e-12)
    np.testing.assert_allclose(run(Dot(axis=1), X, Y), np.einsum("nia,nib->nab", X, Y), rtol=1e-12)
    np.testing.assert_allclose(run(Dot(), X, Y[:, 0]), np.einsum("nai,ni->na", X, Y[:, 0]), rtol=1e-12)


def test_a_cosine_is_that_of_the_angle():
    found = run(Dot(cosine=True), X, Y)
    lengths = np.linalg.norm(X, axis=-1)[:, :, None] * np.linalg.norm(Y, axis=-1)[:, None]
    np.testing.assert_allclose(found, np.einsum("nai,nbi->nab", X, Y) / lengths, rtol=1e-12)
    assert run(Dot(cosine=True), np.zeros((1, 3)), Y[:1, 0]).tolist() == [[0.0]]


def test_layers_merge_the_chain_before_them_with_branches():
    trunk = Input(4)
    network = Network.build(trunk + Dense(3) + Dot(trunk + Dense(3), cosine=True))
    outputs = network.declare({"inputs": Spec((4,))}, "float32", by_name).outputs
    assert list(outputs.values())[-1].shape == (1,)
    assert str(network).endswith("x1 + dense(3) + dot(x1 + dense(3), cosine=true)")


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("layer", "branch", "text"),
    [
        (Mean, Dense(1), r"mean\(\(4,\), \(1,\)\): the shapes differ. Use Dense or Reshape before"),
        (Maximum, Reshape(2, 2), r"maximum\(\(4,\), \(2, 2\)\): the shapes differ"),
        (Multiply, Dense(3), r"multiply\(\(4,\), \(3,\)\): the sides must be equal or 1, and as many. Use Dense or"),
        (Multiply, Reshape(1, 4), r"multiply\(\(4,\), \(1, 4\)\): the sides must be equal or 1"),
        (Dot, Dense(3), r"dot\(\(4,\), \(3,\)\): axis -1 has sides 4 and 3, which must be equal. Use Dense or Reshape"),
        (lambda branch: Dot(branch, axis=2), Dense(4), r"dot\(\(4,\)\): axis 2 is not an axis of a sample"),
    ],
)
def test_branches_that_do_not_fit_are_refused_with_a_remedy(layer, branch, text):
    trunk = Input(4)
    with pytest.raises(SigmaNetworkError, match=text):
        Network.build(trunk + layer(trunk + branch)).declare({"inputs": Spec((4,))}, "float32", by_name)


def test_a_dot_product_has_two_sides():
    trunk = Input(4)
    with pytest.raises(SigmaNetworkError, match=r"it does not take 3 inputs. Merge them first"):
        Network.build(trunk + Dot(trunk, trunk + Dense(4)))


@pytest.mark.parametrize(
    ("make", "text"),
    [(lambda: Dot(axis=1.5), "Dot.axis: must be a whole number"), (lambda: Dot(cosine=1), "Dot.cosine: must be true")],
)
def test_settings_of_another_kind_are_refused(make, text):
    with pytest.raises(SigmaNetworkError, match=text):
        make()
