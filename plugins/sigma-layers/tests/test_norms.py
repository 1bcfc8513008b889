"""Norms: closed forms, running statistics in training and evaluation, errors."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import BatchNorm, GroupNorm, Input, InstanceNorm, LayerNorm, RMSNorm
from sigma_testing import LayerSuite, by_name, trace_layer

FOUR, SEQUENCE, IMAGE = Spec((4,)), Spec((5, 3)), Spec((4, 3, 2))


class TestBatchNorm(LayerSuite):
    inputs = (FOUR,)

    def make(self):
        return BatchNorm()


class TestBatchNormOfImages(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return BatchNorm(momentum=0.3, epsilon=1e-3)


class TestBatchNormOfSequences(LayerSuite):
    inputs = (SEQUENCE,)

    def make(self):
        return BatchNorm(axis=-1, affine=False)


class TestLayerNorm(LayerSuite):
    inputs = (SEQUENCE,)

    def make(self):
        return LayerNorm()


class TestLayerNormOfImages(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return LayerNorm(axes=3)


class TestLayerNormWithoutScale(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return LayerNorm(2, 1e-3, affine=False)


class TestGroupNorm(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return GroupNorm(2)


class TestGroupNormOfFeatures(LayerSuite):
    inputs = (FOUR,)

    def make(self):
        return GroupNorm(2, affine=False)


class TestInstanceNorm(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return InstanceNorm()


class TestRMSNorm(LayerSuite):
    inputs = (SEQUENCE,)

    def make(self):
        return RMSNorm()


class TestRMSNormOfImages(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return RMSNorm(axes=2, affine=False)


def given(layer, x, training=True, **values):
    """Return the output and the new state for samples, parameters and state by name."""
    dtype = x.dtype.name
    it = trace_layer(layer, [Spec(x.shape, dtype)], training=training, precision=dtype)
    known = {name: np.asarray(one.initialiser * np.ones(one.shape)) for name, one in it.shapes.parameters.items()}
    known |= {name: np.asarray(one.initialiser * np.ones(one.shape)) for name, one in it.shapes.state.items()}
    known |= {name: np.asarray(one.value) for name, one in it.shapes.live.items()}
    known |= {f"0-it.{name}": np.asarray(value) for name, value in values.items()}
    output, *state = it.run([x, *(known[name].astype(dtype) for name in it.names[1:])])
    return output, {name.removeprefix("0-it."): value for name, value in zip(it.changes, state, strict=True)}


DRAW = np.random.default_rng(0)
X = DRAW.normal(2.0, 3.0, size=(6, 4))
IMAGES = DRAW.normal(-1.0, 2.0, size=(5, 4, 3, 2))
PAIR = {"scale": DRAW.normal(size=4), "shift": DRAW.normal(size=4)}


# -- batch norm --------------------------------------------------------------------------------------------------------
def test_a_batch_is_normalised_with_its_own_statistics_in_training():
    wanted = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5) * PAIR["scale"] + PAIR["shift"]
    np.testing.assert_allclose(given(BatchNorm(), X, **PAIR)[0], wanted, rtol=1e-12)
    axes, wide = (0, 2, 3), (1, 4, 1, 1)
    wanted = (IMAGES - IMAGES.mean(axes, keepdims=True)) / np.sqrt(IMAGES.var(axes, keepdims=True) + 1e-5)
    wanted = wanted * PAIR["scale"].reshape(wide) + PAIR["shift"].reshape(wide)
    np.testing.assert_allclose(given(BatchNorm(), IMAGES, **PAIR)[0], wanted, rtol=1e-12)


@pytest.mark.parametrize(("layer", "axis"), [(BatchNorm(), 0), (LayerNorm(affine=False), 1)])
def test_numbers_far_from_zero_are_normalised_up_to_the_rounding_of_their_mean(layer, axis):
    x = np.random.default_rng(1).normal(1e4, 1.0, (2000, 400)).astype("float32")
    wide = x.astype("float64")
    wanted = (wide - wide.mean(axis, keepdims=True)) / np.sqrt(wide.var(axis, keepdims=True) + 1e-5)
    found = given(layer, x)[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=16 * 1e4 * 2**-24)  # sixteen units of half the mean's last place
    np.testing.assert_allclose(found.var(axis, dtype="float64"), 1.0, rtol=1e-3)


def test_a_batch_is_normalised_with_the_running_statistics_in_evaluation():
    mean, variance = DRAW.normal(size=4), DRAW.uniform(0.5, 2.0, 4)
    found, state = given(BatchNorm(epsilon=0.5), X, training=False, mean=mean, variance=variance)
    np.testing.assert_allclose(found, (X - mean) / np.sqrt(variance + 0.5), rtol=1e-12)
    assert not state


def test_running_statistics_are_weighted_means_of_those_of_the_batches():
    state = {}
    for batch in (X, X[:3] + 1, X * 2):
        _, state = given(BatchNorm(momentum=0.25), batch, **state)
    weights = np.array([0.75**2, 0.75, 1.0]) * 0.25
    means = np.stack([X.mean(0), X[:3].mean(0) + 1, X.mean(0) * 2])
    variances = np.stack([X.var(0, ddof=1), X[:3].var(0, ddof=1), X.var(0, ddof=1) * 4])
    np.testing.assert_allclose(state["mean"], weights @ means, rtol=1e-12)
    np.testing.assert_allclose(state["variance"], 0.75**3 + weights @ variances, rtol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_a_momentum_of_zero_keeps_the_statistics_and_one_takes_those_of_the_batch(momentum):
    state = given(BatchNorm(momentum=momentum), X, mean=np.full(4, 7.0))[1]
    np.testing.assert_allclose(state["mean"], X.mean(0) if momentum else np.full(4, 7.0), rtol=1e-12)
    np.testing.assert_allclose(state["variance"], X.var(0, ddof=1) if momentum else np.ones(4), rtol=1e-12)


def test_a_batch_of_one_row_has_no_variance_and_leaves_the_running_one():
    found, state = given(BatchNorm(), X[:1], **PAIR)
    np.testing.assert_array_equal(found, PAIR["shift"][None])
    np.testing.assert_allclose(state["mean"], 0.1 * X[0], rtol=1e-12)
    np.testing.assert_array_equal(state["variance"], np.ones(4))
    _, state = given(BatchNorm(), IMAGES[:1])
    np.testing.assert_allclose(state["variance"], 0.9 + 0.1 * IMAGES[0].var((1, 2), ddof=1), rtol=1e-12)


def test_features_that_are_constant_in_a_batch_are_the_shift():
    np.testing.assert_array_equal(given(BatchNorm(), np.full((3, 4), 5.0), **PAIR)[0], np.tile(PAIR["shift"], (3, 1)))


def test_features_lie_on_the_first_axis_of_a_sample_or_on_a_given_one():
    x = DRAW.normal(size=(4, 5, 3))
    assert BatchNorm().parameters(SEQUENCE)["scale"].shape == (5,)
    assert BatchNorm(axis=-1).state(SEQUENCE)["mean"].shape == (3,)
    last = given(BatchNorm(axis=2), x)[0]
    np.testing.assert_array_equal(last, given(BatchNorm(axis=-1), x)[0])
    np.testing.assert_allclose(last, given(BatchNorm(), x.transpose(0, 2, 1))[0].transpose(0, 2, 1), rtol=1e-12)


def test_a_value_that_is_not_finite_spoils_its_own_feature_only():
    x = X.copy()
    x[2, 1] = np.nan
    found, state = given(BatchNorm(), x)
    assert np.isnan(found[:, 1]).all()
    assert np.isfinite(np.delete(found, 1, axis=1)).all()
    assert np.isnan(state["mean"]).tolist() == [False, True, False, False]


def test_the_momentum_can_be_set_live():
    it = trace_layer(BatchNorm(momentum=0.2), [Spec((3, 4), "float64")], training=True)
    assert it.shapes.live["0-it.momentum"].value == 0.2


# -- others ------------------------------------------------------------------------------------------------------------
def standard(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_layer_is_normalised_over_its_trailing_axes(axes):
    scale, shift = DRAW.normal(size=(2, *IMAGES.shape[-axes:]))
    found = given(LayerNorm(axes), IMAGES, scale=scale, shift=shift)[0]
    wanted = standard(IMAGES, tuple(range(4 - axes, 4))) * scale + shift
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_groups_of_channels_are_normalised_together():
    wide = (4, 1, 1)
    wanted = standard(IMAGES.reshape(5, 2, 2, 3, 2), (2, 3, 4)).reshape(IMAGES.shape)
    wanted = wanted * PAIR["scale"].reshape(wide) + PAIR["shift"].reshape(wide)
    np.testing.assert_allclose(given(GroupNorm(2), IMAGES, **PAIR)[0], wanted, rtol=1e-12, atol=1e-14)


def test_instance_norm_has_a_group_for_each_channel_and_one_group_is_a_layer():
    found = given(InstanceNorm(), IMAGES, **PAIR)[0]
    np.testing.assert_allclose(found, given(GroupNorm(4), IMAGES, **PAIR)[0], rtol=1e-12, atol=1e-14)
    one, layer = (given(made, IMAGES)[0] for made in (GroupNorm(1), LayerNorm(axes=3)))
    np.testing.assert_allclose(one, layer, rtol=1e-12, atol=1e-14)


def test_rms_norm_divides_by_the_root_mean_square():
    x, scale = DRAW.normal(3.0, size=(2, 5, 3)), DRAW.normal(size=3)
    wanted = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale
    np.testing.assert_allclose(given(RMSNorm(), x, scale=scale)[0], wanted, rtol=1e-12)
    assert not given(RMSNorm(), np.zeros((2, 5, 3)))[0].any()


def test_norms_without_a_scale_have_no_parameters():
    for layer in (BatchNorm(affine=False), LayerNorm(affine=False), GroupNorm(2, affine=False),
                  InstanceNorm(affine=False), RMSNorm(affine=False)):  # fmt: skip
        assert not layer.parameters(IMAGE)


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sides", "layer", "text"),
    [
        ((), BatchNorm(), r"1-batch_norm: batch_norm\(\(\)\): axis 1 is not an axis of a sample. Use 1 for the first"),
        ((4, 3), BatchNorm(axis=3), r"batch_norm\(\(4, 3\)\): axis 3 is not an axis of a sample"),
        ((4, 3), BatchNorm(axis=0), r"batch_norm.*: axis 0 is not .*; axis 0 is the batch"),
        ((4, 3), BatchNorm(axis=-3), r"batch_norm.*: axis -3 is not an axis of a sample"),
        ((4, 3), LayerNorm(3), r"layer_norm\(\(4, 3\)\): there are no 3 trailing axes to normalise, as a sample has 2"),
        ((4, 1), LayerNorm(), r"layer_norm\(\(4, 1\)\): what is normalised together has a single value"),
        ((), RMSNorm(), r"rms_norm\(\(\)\): there are no 1 trailing axes"),
        ((3, 5), GroupNorm(2), r"group_norm\(\(3, 5\)\): its channels, .* cannot be divided into 2 groups. Use a num"),
        ((), GroupNorm(1), r"group_norm\(\(\)\): its channels"),
        ((4,), GroupNorm(4), r"group_norm\(\(4,\)\): a group has a single value, which always normalises to 0"),
        ((4,), InstanceNorm(), r"instance_norm\(\(4,\)\): a sample must have channels and sides. Use layer_norm"),
        ((4, 1), InstanceNorm(), r"instance_norm\(\(4, 1\)\): a channel has a single value.* or use batch_norm"),
    ],
)
def test_samples_that_do_not_fit_are_refused_with_a_remedy(sides, layer, text):
    with pytest.raises(SigmaNetworkError, match=text):
        Network.build(Input(*sides) + layer).declare({"inputs": Spec(sides)}, "float32", by_name)


@pytest.mark.parametrize("value", [0, -1e-5, float("nan"), float("inf"), "small", None, True])
@pytest.mark.parametrize("make", [BatchNorm, LayerNorm, InstanceNorm, RMSNorm])
def test_epsilon_must_be_positive(make, value):
    with pytest.raises(SigmaNetworkError, match=rf"{make.__name__}.epsilon: must be a positive number \(got"):
        make(epsilon=value)


@pytest.mark.parametrize("value", [-0.1, 1.1, "all"])
def test_momentum_lies_between_0_and_1(value):
    with pytest.raises(SigmaConfigError, match=r"BatchNorm.momentum: must be"):
        BatchNorm(momentum=value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: BatchNorm(affine="no"), r"BatchNorm.affine: must be true or false \(got 'no'\)"),
        (lambda: BatchNorm(axis=1.0), r"BatchNorm.axis: must be a whole number"),
        (lambda: LayerNorm(axes=0), r"LayerNorm.axes: must be a whole number of at least 1"),
        (lambda: GroupNorm(0), r"GroupNorm.groups: must be a whole number of at least 1"),
    ],
)
def test_settings_of_another_kind_are_refused(make, text):
    with pytest.raises(SigmaNetworkError, match=text):
        make()
