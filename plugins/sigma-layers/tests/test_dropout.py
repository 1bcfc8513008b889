"""Dropout, SpatialDropout and GaussianNoise."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Dropout, GaussianNoise, SpatialDropout
from sigma_testing import LayerSuite, trace_layer


class TestDropout(LayerSuite):
    inputs = (Spec((6, 3)),)

    def make(self):
        return Dropout(0.4)


class TestSpatialDropout(LayerSuite):
    inputs = (Spec((4, 3, 2)),)

    def make(self):
        return SpatialDropout(0.4)


class TestSpatialDropoutOfFeatures(LayerSuite):
    inputs = (Spec((4, 3)),)

    def make(self):
        return SpatialDropout(0.2, axis=-1)


class TestGaussianNoise(LayerSuite):
    inputs = (Spec((4, 3)),)

    def make(self):
        return GaussianNoise(0.5)

    def test_it_computes_in_the_requested_precision(self):
        """Compare dtypes only: float64 draws other numbers than float32."""
        for precision in ("float64", "float32"):
            assert self.run(precision=precision)[0].dtype == precision


def dropped(rate, seed=1, shape=(200, 500), make=Dropout):
    it = trace_layer(make(rate), [Spec(shape, "float64")], training=True)
    return it.run(it.values([np.full(shape, 3.0)], seed))[0]


def test_remaining_elements_are_scaled_to_keep_the_mean():
    found = dropped(0.4)
    assert set(np.unique(found)) == {0.0, 3.0 / 0.6}
    share = (found == 0).mean()
    assert abs(share - 0.4) < 5 * np.sqrt(0.4 * 0.6 / found.size)


def test_a_rate_of_zero_drops_nothing():
    assert (dropped(0.0) == 3.0).all()


def test_another_seed_drops_other_elements():
    assert (dropped(0.5, 1) != dropped(0.5, 2)).any()


def test_dropout_is_the_identity_outside_training():
    it = trace_layer(Dropout(0.4), [Spec((2, 3))], training=False, precision="float32")
    assert it.output is it.graph.inputs[0]


def test_the_dropout_rate_can_be_set_live():
    it = trace_layer(Dropout(0.4), [Spec((2, 3), "float64")], training=True)
    assert "0-it.rate" in it.names
    assert it.shapes.live["0-it.rate"].value == 0.4


@pytest.mark.parametrize("rate", [1.0, -0.1, "a lot", None])
def test_a_dropout_rate_outside_0_to_below_1_is_refused(rate):
    with pytest.raises(SigmaConfigError, match=r"Dropout.rate: must be"):
        Dropout(rate)


# -- spatial dropout ---------------------------------------------------------------------------------------------------
def test_whole_channels_are_dropped_each_on_its_own():
    found = dropped(0.4, shape=(100, 200, 3, 2), make=SpatialDropout)
    channels = found.reshape(100, 200, 6)
    assert (channels == channels[:, :, :1]).all()
    assert set(np.unique(found)) == {0.0, 3.0 / 0.6}
    share = (channels[:, :, 0] == 0).mean()
    assert abs(share - 0.4) < 5 * np.sqrt(0.4 * 0.6 / 20_000)


def test_features_of_sequences_are_dropped_at_all_times():
    found = dropped(0.5, shape=(50, 7, 8), make=lambda rate: SpatialDropout(rate, axis=-1))
    assert (found == found[:, :1]).all()
    assert len(np.unique(found[:, 0], axis=0)) > 1


@pytest.mark.parametrize("axis", [0, 3, -3])
def test_channels_lie_on_an_axis_of_the_sample(axis):
    with pytest.raises(
        SigmaNetworkError, match=rf"spatial_dropout\(\(4, 3\)\): axis {axis} is not an axis of a sample"
    ):
        trace_layer(SpatialDropout(0.5, axis), [Spec((2, 4, 3))], training=False)


# -- noise -------------------------------------------------------------------------------------------------------------
def test_noise_has_mean_0_and_the_deviation():
    noise = dropped(0.25, make=GaussianNoise) - 3.0
    assert abs(noise.mean()) < 5 * 0.25 / np.sqrt(noise.size)
    assert abs(noise.std() - 0.25) < 5 * 0.25 / np.sqrt(2 * noise.size)
    assert (dropped(0.25, 2, make=GaussianNoise) - 3.0 != noise).any()


def test_noise_may_take_the_place_of_its_input():
    noise = dropped(0.25, make=lambda deviation: GaussianNoise(deviation, replace=True))
    np.testing.assert_allclose(noise, dropped(0.25, make=GaussianNoise) - 3.0, atol=1e-6)
    assert (noise != dropped(0.25, 2, make=lambda deviation: GaussianNoise(deviation, replace=True))).any()
    with pytest.raises(SigmaConfigError, match=r"GaussianNoise\.replace"):
        GaussianNoise(replace="always")


def test_noise_without_deviation_changes_nothing():
    assert (dropped(0.0, make=GaussianNoise) == 3.0).all()


@pytest.mark.parametrize(
    ("layer", "name", "value"), [(SpatialDropout(0.4), "rate", 0.4), (GaussianNoise(0.3), "deviation", 0.3)]
)
def test_layers_of_training_are_the_identity_in_evaluation_and_their_settings_live(layer, name, value):
    it = trace_layer(layer, [Spec((2, 3, 4))], training=False, precision="float32")
    assert it.output is it.graph.inputs[0]
    it = trace_layer(layer, [Spec((2, 3, 4), "float64")], training=True)
    assert it.shapes.live[f"0-it.{name}"].value == value


@pytest.mark.parametrize(
    "make", [lambda: SpatialDropout(1.0), lambda: GaussianNoise(-0.1), lambda: GaussianNoise(float("inf"))]
)
def test_settings_outside_their_range_are_refused(make):
    with pytest.raises(SigmaConfigError, match=r"(SpatialDropout.rate|GaussianNoise.deviation): must be"):
        make()
