"""Convolutions of every rank: grouped, dilated, depthwise and transposed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sigma_kernel import Network
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import (
    Conv1d,
    Conv1dTranspose,
    Conv2d,
    Conv2dTranspose,
    Conv3d,
    Conv3dTranspose,
    DepthwiseConv1d,
    DepthwiseConv2d,
    DepthwiseConv3d,
    Input,
)
from sigma_testing import LayerSuite, by_name, trace_layer

SIGNAL, IMAGE, VOLUME = Spec((4, 7)), Spec((2, 6, 5)), Spec((2, 3, 4, 3))


class TestConv1d(LayerSuite):
    inputs = (SIGNAL,)

    def make(self):
        return Conv1d(6, 3, stride=2, padding="same", dilation=2, groups=2, activation="tanh")


class TestConv2dOfGroups(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Conv2d(4, 3, padding=(1, 2), dilation=(2, 1), groups=2)


class TestConv3d(LayerSuite):
    inputs = (VOLUME,)

    def make(self):
        return Conv3d(3, 2, stride=(1, 2, 1), padding=1, bias=False)


class TestDepthwiseConv1d(LayerSuite):
    inputs = (SIGNAL,)

    def make(self):
        return DepthwiseConv1d(3, dilation=2)


class TestDepthwiseConv2d(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return DepthwiseConv2d(3, padding="same", multiplier=2)


class TestDepthwiseConv3d(LayerSuite):
    inputs = (VOLUME,)

    def make(self):
        return DepthwiseConv3d(2, bias=False)


class TestConv1dTranspose(LayerSuite):
    inputs = (SIGNAL,)

    def make(self):
        return Conv1dTranspose(6, 3, stride=3, output_padding=2, groups=2, activation="leaky_relu")


class TestConv2dTranspose(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Conv2dTranspose(3, (2, 3), stride=2, padding=(0, 1), output_padding=(1, 0), dilation=(1, 2))


class TestConv2dTransposeThatMultipliesTheSides(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Conv2dTranspose(2, 4, stride=(2, 3), padding="same", bias=False)


class TestConv3dTranspose(LayerSuite):
    inputs = (VOLUME,)

    def make(self):
        return Conv3dTranspose(2, 2, stride=2, padding=1)


def run(layer, *arrays):
    """Return what a layer computes from samples and parameters."""
    return trace_layer(layer, [Spec(arrays[0].shape, "float64")], training=True).run(arrays)[0]


def shape(layer, *sides):
    """Return the shape of a sample's output."""
    return trace_layer(layer, [Spec((3, *sides), "float64")], training=True).output.shape[1:]


RANDOM = np.random.default_rng(0)


# -- what they compute -------------------------------------------------------------------------------------------------
def test_a_convolution_of_a_signal_is_its_correlation_with_the_filter():
    x, w = RANDOM.normal(size=9), RANDOM.normal(size=4)
    found = run(Conv1d(1, 4), x[None, None], w[None, None], np.zeros(1))
    np.testing.assert_allclose(found[0, 0], np.correlate(x, w, "valid"), rtol=1e-12)


def test_a_dilated_filter_skips_elements():
    x, w = RANDOM.normal(size=9), RANDOM.normal(size=3)
    spread = np.array([w[0], 0, 0, w[1], 0, 0, w[2]])
    found = run(Conv1d(1, 3, dilation=3, bias=False), x[None, None], w[None, None])
    np.testing.assert_allclose(found[0, 0], np.correlate(x, spread, "valid"), rtol=1e-12)


def test_each_group_of_filters_reads_channels_of_its_own():
    x, w = RANDOM.normal(size=(2, 4, 5, 5)), RANDOM.normal(size=(6, 2, 3, 3))
    parts = [run(Conv2d(3, 3, bias=False), x[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3]) for g in (0, 1)]
    np.testing.assert_allclose(run(Conv2d(6, 3, bias=False, groups=2), x, w), np.concatenate(parts, 1), rtol=1e-12)


def test_a_volume_is_convolved_along_three_sides():
    x, w = RANDOM.normal(size=(4, 5, 6)), RANDOM.normal(size=(2, 3, 2))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape)
    found = run(Conv3d(1, (2, 3, 2), bias=False), x[None, None], w[None, None])
    np.testing.assert_allclose(found[0, 0], (windows * w).sum((-3, -2, -1)), rtol=1e-12)


def test_a_depthwise_convolution_has_filters_of_its_own_for_each_channel():
    x, w = RANDOM.normal(size=(2, 8)), RANDOM.normal(size=(4, 1, 3))
    found = run(DepthwiseConv1d(3, multiplier=2, bias=False), x[None], w)[0]
    for output, (channel, filter_) in enumerate(zip((0, 0, 1, 1), w[:, 0], strict=True)):
        np.testing.assert_allclose(found[output], np.correlate(x[channel], filter_, "valid"), rtol=1e-12)


def test_a_transposed_convolution_of_a_signal_is_its_convolution_with_the_filter():
    x, w = RANDOM.normal(size=6), RANDOM.normal(size=3)
    found = run(Conv1dTranspose(1, 3, bias=False), x[None, None], w[None, None])
    np.testing.assert_allclose(found[0, 0], np.convolve(x, w), rtol=1e-12)


def test_a_transposed_convolution_with_windows_side_by_side_is_a_kronecker_product():
    x, w = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(2, 3))
    found = run(Conv2dTranspose(1, (2, 3), stride=(2, 3)), x[None, None], w[None, None], np.array([0.5]))
    np.testing.assert_allclose(found[0, 0], np.kron(x, w) + 0.5, rtol=1e-12)


@pytest.mark.parametrize("padding", [0, 1, "same"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (3, 1), (2, 2)])
def test_a_transposed_convolution_is_the_adjoint_of_the_convolution(stride, dilation, padding):
    """The product of a convolution with y is that of x with the transposed convolution of y."""
    w = RANDOM.normal(size=(4, 3, 3))
    y = RANDOM.normal(size=(2, 4, 5))
    back = run(Conv1dTranspose(6, 3, stride, padding, groups=2, bias=False, dilation=dilation), y, w)
    x = RANDOM.normal(size=back.shape)
    there = run(Conv1d(4, 3, stride, padding, groups=2, bias=False, dilation=dilation), x, w)
    assert (there * y).sum() == pytest.approx((x * back).sum(), rel=1e-12)


def test_elements_between_filters_that_do_not_touch_are_the_bias():
    found = run(Conv1dTranspose(1, 1, stride=3, output_padding=1), np.ones((1, 1, 2)), np.ones((1, 1, 1)), np.ones(1))
    np.testing.assert_array_equal(found, [[[2, 1, 1, 2, 1]]])


# -- shapes and parameters ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("layer", "sides", "expected"),
    [
        (Conv1d(5, 3, padding="same", dilation=4), (2, 7), (5, 7)),
        (Conv1d(5, 4, stride=2, padding="same"), (2, 7), (5, 4)),
        (Conv1d(5, 1), (2, 1), (5, 1)),
        (Conv2d(4, 3, dilation=(1, 2)), (3, 6, 7), (4, 4, 3)),
        (Conv3d(4, 3, padding="same", stride=2), (1, 5, 6, 1), (4, 3, 3, 1)),
        (DepthwiseConv3d(2, multiplier=3), (2, 4, 4, 4), (6, 3, 3, 3)),
        (Conv1dTranspose(3, 4, stride=2, padding=1), (2, 5), (3, 10)),
        (Conv1dTranspose(3, 3, stride=2, padding=1, output_padding=1), (2, 5), (3, 10)),
        (Conv1dTranspose(3, 3, dilation=3, output_padding=0), (2, 5), (3, 11)),
        (Conv2dTranspose(3, 3, stride=2, padding="same"), (2, 5, 1), (3, 10, 2)),
        (Conv2dTranspose(3, 2, stride=(3, 1), padding="same"), (2, 5, 4), (3, 15, 4)),
        (Conv3dTranspose(1, 2, stride=2), (4, 1, 2, 3), (1, 2, 4, 6)),
    ],
)
def test_outputs_have_the_documented_shapes(layer, sides, expected):
    assert shape(layer, *sides) == expected


@pytest.mark.parametrize(
    ("layer", "spec", "weights", "fans"),
    [
        (Conv1d(6, 5, groups=2), SIGNAL, (6, 2, 5), (10, 15)),
        (Conv3d(4, (1, 2, 3)), VOLUME, (4, 2, 1, 2, 3), (12, 24)),
        (DepthwiseConv2d(3, multiplier=4), IMAGE, (8, 1, 3, 3), (9, 36)),
        (Conv1dTranspose(6, 3, groups=2), SIGNAL, (4, 3, 3), (6, 9)),
        (Conv2dTranspose(5, 2), IMAGE, (2, 5, 2, 2), (8, 20)),
    ],
)
def test_weights_have_the_shape_and_the_fans_of_a_group(layer, spec, weights, fans):
    parameters = layer.parameters(spec)
    assert parameters["weights"].shape == weights
    assert (parameters["weights"].fan_in, parameters["weights"].fan_out) == fans
    assert parameters["biases"].shape == (shape(layer, *spec.shape)[0],)


def test_settings_that_conv2d_did_not_have_are_left_out_of_its_text():
    network = Input(2, 6, 5) + Conv2d(3, 3, padding=1, activation="tanh")
    assert str(network) == 'input(2, 6, 5) + conv2d(3, padding=1, activation="tanh")'


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sides", "layer", "text"),
    [
        ((28, 28), Conv3d(3), r"conv3d\(\(28, 28\)\): a sample must be a volume, .*Put Reshape\(channels, depth, h"),
        ((9,), Conv1d(3), r"1-conv1d: conv1d\(\(9,\)\): a sample must be a signal, .* Put Reshape\(1, 9\) before it"),
        ((9, 9), Conv2dTranspose(3), r"conv2d_transpose\(\(9, 9\)\).*image, .* Put Reshape\(1, 9, 9\) before it"),
        ((3, 9), Conv1d(4, groups=2), r"conv1d\(\(3, 9\)\): 3 channels and 4 filters cannot be divided into 2 groups"),
        ((4, 9), Conv1dTranspose(3, groups=2), r"4 channels and 3 filters cannot be divided into 2 groups. Use a num"),
        ((4, 5), Conv1d(4, 3, dilation=3), r"a window of 7 does not fit a side of 5 with padding \(0, 0\). Use a sm"),
        ((4, 5), DepthwiseConv1d((3, 3)), r"depthwise_conv1d\(\(4, 5\)\): size \(3, 3\) has 2 entries for 1 side"),
        ((4, 5), Conv1dTranspose(2, dilation=(1, 1)), r"conv1d_transpose.*: dilation \(1, 1\) has 2 entries for 1 sid"),
        ((4, 5), Conv1dTranspose(2, output_padding=(0, 1)), r"output_padding \(0, 1\) has 2 entries for 1 side"),
        ((4, 5), Conv1dTranspose(2, output_padding=1), r"output_padding 1 is not less than the stride, 1. Use less"),
        ((4, 5), Conv1dTranspose(2, 3, 2, "same", 1), r"output_padding 1 and padding \"same\" contradict each other"),
        ((4, 1), Conv1dTranspose(2, 3, padding=2), r"padding \(2, 2\) leaves nothing of a side of 1. Use less padding"),
    ],
)  # fmt: skip
def test_samples_that_do_not_fit_are_refused_with_a_remedy(sides, layer, text):
    with pytest.raises(SigmaNetworkError, match=text):
        Network.build(Input(*sides) + layer).declare({"inputs": Spec(sides)}, "float32", by_name)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "two", ()])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda v: Conv1d(2, dilation=v), "Conv1d.dilation"),
        (lambda v: Conv2dTranspose(2, stride=v), "Conv2dTranspose.stride"),
        (lambda v: DepthwiseConv3d(multiplier=v), "DepthwiseConv3d.multiplier"),
        (lambda v: Conv3d(2, groups=v), "Conv3d.groups"),
    ],
)
def test_settings_that_count_are_positive(make, name, value):
    with pytest.raises(SigmaNetworkError, match=rf"{name}: must be a whole number of at least 1"):
        make(value)


@pytest.mark.parametrize("value", [-1, 0.5, "same", True])
def test_output_padding_is_a_number_for_each_side(value):
    with pytest.raises(
        SigmaNetworkError,
        match=r"Conv1dTranspose.output_padding: must be whole numbers of at least 0, one for all sides or one for eac",
    ):
        Conv1dTranspose(2, output_padding=value)


# -- advice ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sides", "layer", "text"),
    [
        ((8, 9, 7, 1), Conv3d(2, 1), r"depth, height, width, channels\).* to \(1, 8, 9, 7\): x.transpose\(0, 4, 1"),
        ((9, 9, 3), DepthwiseConv2d(1), r"Transpose the data to \(3, 9, 9\): x.transpose\(0, 3, 1, 2\)"),
    ],
)  # fmt: skip
def test_samples_with_their_channels_last_are_warned_of(sides, layer, text):
    with pytest.warns(UserWarning, match=text):
        Network.build(Input(*sides) + layer).declare({"inputs": Spec(sides)}, "float32", by_name)


def test_short_signals_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sides in ((8, 3), (4, 64), (2, 1)):
            Network.build(Input(*sides) + Conv1d(2, 1)).declare({"inputs": Spec(sides)}, "float32", by_name)
