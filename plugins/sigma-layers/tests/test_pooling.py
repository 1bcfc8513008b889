"""Pools: dilated, global and adaptive ones, padding that does not count, and windows beyond the end."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace
from sigma_layers import (
    AdaptiveAveragePool,
    AdaptiveMaxPool,
    AveragePool,
    GlobalAveragePool,
    GlobalMaxPool,
    Input,
    MaxPool,
)
from sigma_testing import LayerSuite, by_name, trace_layer

SIGNAL, IMAGE, VOLUME = Spec((2, 7)), Spec((2, 6, 5)), Spec((1, 3, 4, 2))


class TestMaxPoolOfDilatedWindows(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return MaxPool(2, stride=(1, 2), padding=1, dilation=(1, 3))


class TestAveragePoolWithoutPadding(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return AveragePool(3, stride=2, padding="same", count_padding=False)


class TestMaxPoolOfWindowsBeyondTheEnd(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return MaxPool(3, stride=2, ceil_mode=True)


class TestAveragePoolOfWindowsBeyondTheEnd(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return AveragePool((2, 3), stride=2, padding=(0, 1), ceil_mode=True)


class TestGlobalMaxPool(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return GlobalMaxPool()


class TestGlobalAveragePool(LayerSuite):
    inputs = (VOLUME,)

    def make(self):
        return GlobalAveragePool(keepdims=True)


class TestAdaptiveMaxPool(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return AdaptiveMaxPool((4, 3))


class TestAdaptiveAveragePool(LayerSuite):
    inputs = (SIGNAL,)

    def make(self):
        return AdaptiveAveragePool(3)


class TestAdaptiveAveragePoolOfEqualParts(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return AdaptiveAveragePool((3, 1))


def run(layer, x):
    return trace_layer(layer, [Spec(x.shape, "float64")], training=True).run([x])[0]


def slopes(layer, x):
    """Return the gradient of the sum of the outputs in the inputs."""
    it = trace_layer(layer, [Spec(x.shape, "float64")], training=True)
    (found,) = interpret(
        Graph(it.graph.inputs, (gradient(it.output.sum(), [it.graph.inputs[0]])[0],)), numpy_namespace()
    )(x)
    return found


X = np.random.default_rng(0).normal(size=(2, 3, 7, 5))
LINE = np.array([[[3.0, 1, 4, 1, 5, 9, 2]]])


# -- what they compute -------------------------------------------------------------------------------------------------
def test_a_dilated_window_skips_elements():
    np.testing.assert_array_equal(run(MaxPool(2, 1, dilation=3), LINE), [[[3, 5, 9, 2]]])
    np.testing.assert_array_equal(run(MaxPool(3, 2, padding=1, dilation=2), LINE), [[[1, 9, 9]]])
    np.testing.assert_array_equal(run(MaxPool(3, 2, padding=1, dilation=2), -LINE), [[[-1, -1, -1]]])


def test_a_dilation_of_one_is_a_plain_pool():
    np.testing.assert_array_equal(run(MaxPool(2, 1, 1, dilation=(2, 1)), X)[:, :, ::1, :].shape[2:], (7, 6))
    wide = np.full((2, 3, 7, 9), -np.inf)
    wide[:, :, :, ::2] = X
    np.testing.assert_array_equal(run(MaxPool((2, 3), 1, dilation=(1, 2)), wide)[..., ::2], run(MaxPool((2, 3), 1), X))


def test_padding_that_does_not_count_is_left_out_of_means():
    found = run(AveragePool(3, 1, 1, count_padding=False), LINE)
    np.testing.assert_allclose(found, [[[2, 8 / 3, 2, 10 / 3, 5, 16 / 3, 5.5]]], rtol=1e-12)
    np.testing.assert_allclose(run(AveragePool(3, 1, 1), LINE)[0, 0, 0], 4 / 3, rtol=1e-12)
    ones = run(AveragePool((3, 4), 2, "same", count_padding=False), np.ones((1, 2, 5, 7)))
    np.testing.assert_array_equal(ones, np.ones((1, 2, 3, 4)))


def test_ceil_mode_keeps_a_last_window_that_lies_partly_beyond_the_end():
    line = LINE[..., :6]
    assert run(MaxPool(3, 2), line).tolist() == [[[4, 5]]]
    assert run(MaxPool(3, 2, ceil_mode=True), line).tolist() == [[[4, 5, 9]]]
    assert run(MaxPool(2, 3, dilation=3, ceil_mode=True), line[..., :5]).tolist() == [[[3, 1]]]
    assert run(MaxPool(8, 3, ceil_mode=True), line).tolist() == [[[9]]]


def test_what_lies_beyond_the_padding_never_counts_in_a_mean():
    line = LINE[..., :6]  # the last window holds 9, a zero of the padding, and two elements beyond it
    np.testing.assert_allclose(run(AveragePool(4, 3, 1, ceil_mode=True), line), [[[8 / 4, 19 / 4, 9 / 2]]], rtol=1e-12)
    without = run(AveragePool(4, 3, 1, count_padding=False, ceil_mode=True), line)
    np.testing.assert_allclose(without, [[[8 / 3, 19 / 4, 9]]], rtol=1e-12)


def test_ceil_mode_drops_a_window_that_would_begin_in_the_padding():
    x = np.arange(1.0, 6.0).reshape(1, 1, 5)
    assert run(MaxPool(2, 2, 1, ceil_mode=True), x).tolist() == [[[1, 3, 5]]]
    assert run(AveragePool(2, 2, 1, ceil_mode=True), x).tolist() == [[[0.5, 2.5, 4.5]]]


def test_ceil_mode_changes_nothing_where_windows_fill_the_sides():
    same = AveragePool((3, 4), 2, "same", ceil_mode=True)
    np.testing.assert_array_equal(run(same, X), run(AveragePool((3, 4), 2, "same"), X))
    np.testing.assert_array_equal(run(MaxPool((3, 1), 2, ceil_mode=True), X), run(MaxPool((3, 1), 2), X))


def test_global_pools_leave_one_value_for_each_channel():
    np.testing.assert_array_equal(run(GlobalMaxPool(), X), X.max((2, 3)))
    np.testing.assert_allclose(run(GlobalAveragePool(), X), X.mean((2, 3)), rtol=1e-12)
    assert run(GlobalMaxPool(keepdims=True), X).shape == run(GlobalAveragePool(keepdims=True), X).shape == (2, 3, 1, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11])
def test_adaptive_windows_begin_and_end_as_documented(size):
    spans = [(i * 7 // size, -(-(i + 1) * 7 // size)) for i in range(size)]
    largest = [[[LINE[0, 0, a:b].max() for a, b in spans]]]
    np.testing.assert_array_equal(run(AdaptiveMaxPool(size), LINE), largest)
    means = [[[LINE[0, 0, a:b].mean() for a, b in spans]]]
    np.testing.assert_allclose(run(AdaptiveAveragePool(size), LINE), means, rtol=1e-12)


def test_adaptive_pools_take_a_size_for_each_side():
    assert run(AdaptiveMaxPool((3, 1)), X).shape == (2, 3, 3, 1)
    np.testing.assert_allclose(run(AdaptiveAveragePool((7, 1)), X), X.mean(3, keepdims=True), rtol=1e-12)


# -- edges -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("layer", [MaxPool(2, 1, dilation=2), AdaptiveMaxPool(2)])
def test_the_first_of_equal_maxima_gets_the_gradient(layer):
    found = slopes(layer, np.ones((1, 1, 3)))
    assert found.tolist() == ([[[1, 0, 0]]] if isinstance(layer, MaxPool) else [[[1, 1, 0]]])


def test_equal_maxima_of_a_channel_share_the_gradient():
    assert slopes(GlobalMaxPool(), np.array([[[2.0, 1, 2, 2]]])).tolist() == [[[1 / 3, 0, 1 / 3, 1 / 3]]]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_stay_in_their_windows(wrong):
    x = LINE.copy()
    x[0, 0, 0] = wrong
    for layer in (AdaptiveAveragePool(3), AdaptiveMaxPool(3), MaxPool(2, 2, dilation=2), AveragePool(3, 2, 1, False)):
        found = run(layer, x)[0, 0]
        assert np.isfinite(found[1:]).all()
        assert np.isfinite(found[0]) == (wrong == -np.inf and not isinstance(layer, AveragePool | AdaptiveAveragePool))


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sides", "layer", "text"),
    [
        ((2, 5), MaxPool(3, dilation=3), r"max_pool\(\(2, 5\)\): a window of 7 does not fit a side of 5"),
        ((2, 4), MaxPool(9, stride=4, ceil_mode=True), r"a window of 9 does not fit a side of 4 with padding \(0, 0\)"),
        ((2, 1), MaxPool(2, padding=1, dilation=2), r"windows of \(2,\) with padding 1 could hold padding only"),
        ((4,), GlobalMaxPool(), r"global_max_pool\(\(4,\)\): .*channels and sides to pool. Put Reshape\(1, 4\) before"),
        ((), GlobalAveragePool(), r"global_average_pool\(\(\)\): .*to pool. Leave it out"),
        ((4,), AdaptiveMaxPool(2), r"adaptive_max_pool\(\(4,\)\): a sample must have channels and sides"),
        ((2, 5), AdaptiveAveragePool((2, 2)), r"adaptive_average_pool\(\(2, 5\)\): size \(2, 2\) has 2 entries for 1 "),
    ],
)
def test_samples_that_do_not_fit_are_refused_with_a_remedy(sides, layer, text):
    with pytest.raises(SigmaNetworkError, match=text):
        Network.build(Input(*sides) + layer).declare({"inputs": Spec(sides)}, "float32", by_name)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: AdaptiveMaxPool(0), "AdaptiveMaxPool.size: must be a whole number of at least 1"),
        (lambda: AdaptiveAveragePool((2, None)), "AdaptiveAveragePool.size: must be a whole number of at least 1"),
        (lambda: MaxPool(2, dilation=0), "MaxPool.dilation: must be a whole number of at least 1"),
        (lambda: AveragePool(2, count_padding="no"), r"AveragePool.count_padding: must be true or false \(got 'no'\)"),
        (lambda: MaxPool(2, ceil_mode=1), "MaxPool.ceil_mode: must be true or false"),
        (lambda: GlobalMaxPool(keepdims=1), "GlobalMaxPool.keepdims: must be true or false"),
    ],
)
def test_settings_of_another_kind_are_refused(make, text):
    with pytest.raises(SigmaNetworkError, match=text):
        make()
