"""Conv2d, MaxPool and AveragePool."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import AveragePool, Conv2d, Dense, Flatten, Input, MaxPool
from sigma_testing import LayerSuite, by_name, trace_layer

IMAGE = Spec((2, 6, 5))


class TestConv2d(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Conv2d(3, 3, padding=1, activation="tanh")


class TestConv2dWithoutBias(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Conv2d(3, (2, 3), stride=(2, 1), padding=(1, 0), bias=False)


class TestConv2dThatKeepsTheSides(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Conv2d(2, [3, 4], padding="same")


class TestMaxPool(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return MaxPool(2)


class TestMaxPoolThatOverlaps(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return MaxPool(3, stride=2, padding=1)


class TestAveragePool(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return AveragePool(3, stride=(1, 2), padding=1)


class TestAveragePoolOfSequences(LayerSuite):
    inputs = (Spec((2, 7)),)

    def make(self):
        return AveragePool(3)


def run(layer, *arrays):
    """Return what a layer computes from samples and, if it has them, parameters."""
    return trace_layer(layer, [Spec(arrays[0].shape, "float64")], training=True).run(arrays)[0]


X = np.arange(16.0).reshape(1, 1, 4, 4)


def test_a_convolution_sums_the_products_in_each_window():
    weights = np.zeros((2, 1, 2, 2))
    weights[0], weights[1, 0, 0, 1] = 1, 10
    found = run(Conv2d(2, 2, stride=2), X, weights, np.array([0.5, 0]))
    np.testing.assert_array_equal(found, [[[[10.5, 18.5], [42.5, 50.5]], [[10, 30], [90, 110]]]])


def test_pools_keep_the_largest_or_the_mean():
    np.testing.assert_array_equal(run(MaxPool(2), X), [[[[5, 7], [13, 15]]]])
    np.testing.assert_array_equal(run(AveragePool(2), X), [[[[2.5, 4.5], [10.5, 12.5]]]])


def test_padding_is_never_the_maximum_and_counts_as_zeros_in_a_mean():
    x = np.full((1, 1, 2, 2), -4.0)
    np.testing.assert_array_equal(run(MaxPool(2, padding=1), x), np.full((1, 1, 2, 2), -4.0))
    np.testing.assert_array_equal(run(AveragePool(2, padding=1), x), np.full((1, 1, 2, 2), -1.0))


@pytest.mark.parametrize(
    ("size", "stride", "sides"), [(3, 1, (6, 5)), ((2, 4), 1, (6, 5)), (3, 2, (3, 3)), (1, (4, 3), (2, 2))]
)
def test_same_padding_gives_sides_divided_by_the_stride(size, stride, sides):
    it = trace_layer(Conv2d(4, size, stride, "same"), [Spec((7, *IMAGE.shape), "float64")], training=True)
    assert it.output.shape == (7, 4, *sides)


def test_an_odd_element_of_same_padding_goes_after():
    assert Conv2d(1, 2, padding="same").window((1, 4, 4))["padding"] == ((0, 1), (0, 1))


def test_convolution_parameters_have_the_size_of_the_window():
    parameters = Conv2d(3, (2, 5)).parameters(IMAGE)
    weights = parameters["weights"]
    assert (weights.shape, weights.initialiser, parameters["biases"].shape) == ((3, 2, 2, 5), "glorot_uniform", (3,))
    assert (weights.fan_in, weights.fan_out) == (20, 30)
    assert list(Conv2d(3, bias=False).parameters(IMAGE)) == ["weights"]


def test_the_small_network_has_the_documented_shapes():
    network = Network.build(
        Input(1, 28, 28) + Conv2d(32, 3, padding=1) + MaxPool(2) + Conv2d(64, 3, padding=1) + MaxPool(2) + Flatten()
    )
    outputs = network.declare({"inputs": Spec((1, 28, 28))}, "float32", by_name).outputs
    assert [spec.shape for spec in outputs.values()] == [
        (1, 28, 28), (32, 28, 28), (32, 14, 14), (64, 14, 14), (64, 7, 7), (3136,),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "layer", "text"),
    [
        ((28, 28), Conv2d(3), r"1-conv2d: conv2d\(\(28, 28\)\): .*Put Reshape\(1, 28, 28\) before it"),
        ((9,), Conv2d(3), r"\(channels, height, width\)\. Put Reshape\(channels, height, width\) before"),
        ((28, 28, 1), Conv2d(3), r"a window of 3 does not fit a side of 1 with padding \(0, 0\).*channels come first"),
        ((1, 4, 4), MaxPool(5), r"max_pool\(\(1, 4, 4\)\): a window of 5 does not fit a side of 4"),
        ((1, 4, 4), Conv2d(1, (1, 2, 3)), r"size \(1, 2, 3\) has 3 entries for 2 side"),
        ((1, 4, 4), AveragePool(2, (2,)), r"average_pool.*: stride \(2,\) has 1 entries for 2 side"),
        ((9,), MaxPool(2), r"channels and sides to pool. Put Reshape\(1, 9\) before"),
        ((), AveragePool(2), r"channels and sides to pool. Leave it out"),
        ((1, 4, 4), MaxPool(2, padding=2), r"with padding 2 could hold padding only. Use less padding"),
    ],
)
def test_samples_that_do_not_fit_are_refused_with_a_remedy(shape, layer, text):
    with pytest.raises(SigmaNetworkError, match=text):
        Network.build(Input(*shape) + layer + Dense(2)).declare({"inputs": Spec(shape)}, "float32", by_name)


@pytest.mark.parametrize("value", [0, -1, 2.0, "two", (), (2, 0), True])
@pytest.mark.parametrize(("make", "name"), [(lambda v: Conv2d(1, v), "Conv2d.size"), (MaxPool, "MaxPool.size"),
                                            (lambda v: AveragePool(2, v), "AveragePool.stride")])  # fmt: skip
def test_windows_must_have_positive_sides(make, name, value):
    with pytest.raises(SigmaNetworkError, match=rf"{name}: must be a whole number of at least 1"):
        make(value)


@pytest.mark.parametrize("value", [-1, 0.5, "valid", (1, -1), True])
@pytest.mark.parametrize("layer", [Conv2d, MaxPool, AveragePool])
def test_padding_is_a_number_or_same(layer, value):
    with pytest.raises(
        SigmaNetworkError, match=rf'{layer.__name__}.padding: must be whole numbers of at least 0, .* or "same" \(got'
    ):
        layer(3, padding=value)
