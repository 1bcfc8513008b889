"""Flatten, Reshape and Permute, Add and Concat, Function."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network, functions as f
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Add, Concat, Dense, Expand, Flatten, Function, Input, Permute, Reshape
from sigma_testing import LayerSuite, by_name, trace_layer

FOUR, TWO_BY_THREE = Spec((4,)), Spec((2, 3))


class TestFlatten(LayerSuite):
    inputs = (Spec((2, 3, 4)),)

    def make(self):
        return Flatten()


class TestReshape(LayerSuite):
    inputs = (Spec((2, 6)),)

    def make(self):
        return Reshape(4, 3)


class TestPermute(LayerSuite):
    inputs = (Spec((2, 3, 4)),)

    def make(self):
        return Permute(3, 1, 2)


class TestExpand(LayerSuite):
    inputs = (Spec((2, 3)),)

    def make(self):
        return Expand(-1)


@pytest.mark.parametrize(
    ("axis", "shape"), [(1, (5, 1, 2, 3)), (3, (5, 2, 3, 1)), (-1, (5, 2, 3, 1)), (-3, (5, 1, 2, 3))]
)
def test_an_axis_is_added_where_it_is_asked_for(axis, shape):
    x = np.arange(30.0).reshape(5, 2, 3)
    np.testing.assert_array_equal(run(Expand(axis), x), x.reshape(shape))


@pytest.mark.parametrize("axis", [0, 4, -4])
def test_an_axis_that_cannot_be_added_is_refused(axis):
    with pytest.raises(SigmaNetworkError, match=rf"expand\(\(2, 3\)\): axis {axis} cannot be .* Use 1 to 3, or -1"):
        run(Expand(axis), np.zeros((5, 2, 3)))


class TestAdd(LayerSuite):
    inputs = (TWO_BY_THREE, TWO_BY_THREE, TWO_BY_THREE)

    def make(self):
        return Add()


class TestConcat(LayerSuite):
    inputs = (TWO_BY_THREE, Spec((5, 3)))

    def make(self):
        return Concat(axis=1)


class TestFunction(LayerSuite):
    inputs = (FOUR, FOUR)

    def make(self):
        return Function(lambda x, y: f.sin(x) * y)


def run(layer, *arrays):
    it = trace_layer(layer, [Spec(x.shape, str(x.dtype)) for x in arrays], training=True)
    return it.run(arrays)[0]


X, Y = np.random.default_rng(0).normal(size=(2, 5, 2, 3))


def test_flatten_keeps_the_batch_and_the_order():
    np.testing.assert_array_equal(run(Flatten(), X), X.reshape(5, 6))
    np.testing.assert_array_equal(run(Flatten(), X[:, 0, 0]), X[:, 0, :1])


def test_reshape_gives_each_sample_its_shape():
    np.testing.assert_array_equal(run(Reshape(3, 2), X), X.reshape(5, 3, 2))
    assert run(Reshape(), X[:, :1, 0]).shape == (5,)


def test_reshape_to_another_number_of_elements_is_refused():
    network = Network.build(Input(2, 3) + Reshape(4))
    with pytest.raises(SigmaNetworkError, match=r"1-reshape: reshape\(\(2, 3\)\): its 6 .* which holds 4\. Use"):
        network.declare({"inputs": TWO_BY_THREE}, "float32", by_name)


@pytest.mark.parametrize("side", [-1, 0, 1.5])
def test_a_dimension_of_reshape_must_be_positive(side):
    with pytest.raises(SigmaNetworkError, match="Reshape.shape: must be a whole number of at least 1"):
        Reshape(side, 3)


def test_permute_reorders_the_axes_of_a_sample():
    np.testing.assert_array_equal(run(Permute(2, 1), X), X.transpose(0, 2, 1))


@pytest.mark.parametrize("axes", [(1,), (1, 1), (2, 3), (1, 2, 3)])
def test_permute_names_each_axis_once(axes):
    with pytest.raises(
        SigmaNetworkError, match=r"permute\(\(2, 3\)\): axes .* its 2 axes once.* as in Permute\(2, 1\)"
    ):
        run(Permute(*axes), X)


def test_axes_of_permute_are_counted_from_one():
    with pytest.raises(SigmaNetworkError, match="Permute.axes: must be a whole number of at least 1"):
        Permute(0, 1)


def test_add_adds_and_concat_joins():
    np.testing.assert_array_equal(run(Add(), X, Y, X), X + Y + X)
    np.testing.assert_array_equal(run(Concat(), X, Y), np.concatenate([X, Y], -1))
    np.testing.assert_array_equal(run(Concat(axis=1), X, Y), np.concatenate([X, Y], 1))


def test_add_does_not_broadcast():
    trunk = Input(4)
    network = Network.build(Add(trunk, trunk + Dense(1)))
    with pytest.raises(SigmaNetworkError, match=r"2-add: add\(\(4,\), \(1,\)\): the shapes differ"):
        network.declare({"inputs": FOUR}, "float32", by_name)


def test_concat_of_shapes_that_differ_on_another_axis_is_refused():
    trunk = Input(2, 3)
    network = Network.build(Concat(trunk, trunk + Dense(2), axis=1))
    with pytest.raises(SigmaNetworkError, match=r"2-concat: concat\(\(2, 2, 3\), \(2, 2, 2\)\)"):
        network.declare({"inputs": TWO_BY_THREE}, "float32", by_name)


@pytest.mark.parametrize("axis", [None, True, 1.0])
def test_an_axis_of_concat_must_be_a_whole_number(axis):
    with pytest.raises(SigmaNetworkError, match="Concat.axis: must be a whole number"):
        Concat(axis=axis)


@pytest.mark.parametrize("axis", [0, -3])
def test_the_batch_axis_cannot_be_concatenated(axis):
    with pytest.raises(SigmaNetworkError, match=f"concat: axis {axis} is the batch"):
        run(Concat(axis=axis), X, Y)


def test_a_function_setting_must_be_callable():
    with pytest.raises(SigmaNetworkError, match="Function.function: must be a function of nodes"):
        Function("sin")
