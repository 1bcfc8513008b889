"""Upsample, Pad and Crop."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Crop, Input, Pad, Upsample
from sigma_testing import LayerSuite, by_name, trace_layer

SIGNAL, IMAGE = Spec((2, 5)), Spec((2, 3, 4))


class TestUpsample(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Upsample((2, 3))


class TestUpsampleToASize(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Upsample(size=(7, 2))


class TestUpsampleByInterpolation(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Upsample(2, mode="linear")


class TestUpsampleWithAlignedCorners(LayerSuite):
    inputs = (SIGNAL,)

    def make(self):
        return Upsample(mode="linear", align_corners=True, size=8)


class TestPad(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Pad([1, (0, 2)], value=0.5)


class TestPadByReflection(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Pad([(2, 1), 3], mode="reflect")


class TestPadByReplication(LayerSuite):
    inputs = (SIGNAL,)

    def make(self):
        return Pad([(0, 7)], mode="replicate")


class TestPadInACircle(LayerSuite):
    inputs = (SIGNAL,)

    def make(self):
        return Pad([(5, 2)], mode="circular")


class TestCrop(LayerSuite):
    inputs = (IMAGE,)

    def make(self):
        return Crop([1, (0, 2)])


def run(layer, x):
    return trace_layer(layer, [Spec(x.shape, "float64")], training=True).run([x])[0]


X = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
LINE = np.array([[[0.0, 4, 8]]])


# -- what they compute -------------------------------------------------------------------------------------------------
def test_nearest_upsampling_repeats_elements():
    np.testing.assert_array_equal(run(Upsample((2, 3)), X), X.repeat(2, 2).repeat(3, 3))
    np.testing.assert_array_equal(run(Upsample(size=5), LINE), [[[0, 0, 4, 4, 8]]])
    np.testing.assert_array_equal(run(Upsample(size=2), LINE), [[[0, 4]]])


def test_linear_upsampling_interpolates():
    np.testing.assert_allclose(run(Upsample(2, "linear"), LINE), [[[0, 1, 3, 5, 7, 8]]], rtol=1e-12)
    aligned = run(Upsample(mode="linear", align_corners=True, size=5), LINE)
    np.testing.assert_allclose(aligned, [[[0, 2, 4, 6, 8]]], rtol=1e-12)
    np.testing.assert_allclose(run(Upsample(3, "linear"), np.full((1, 1, 1, 2), 7.0)), np.full((1, 1, 3, 6), 7.0))


def test_linear_upsampling_is_exact_for_planes():
    rows, columns = np.mgrid[0:4, 0:5].astype(float)
    plane = (2 * rows - columns)[None, None]
    found = run(Upsample(mode="linear", align_corners=True, size=(7, 9)), plane)
    rows, columns = np.mgrid[0:7, 0:9] / 2
    np.testing.assert_allclose(found[0, 0], 2 * rows - columns, atol=1e-12)


def test_a_side_of_one_can_be_aligned():
    np.testing.assert_array_equal(run(Upsample(3, "linear", True), LINE[:, :, 1:2]), [[[4, 4, 4]]])
    np.testing.assert_array_equal(run(Upsample(mode="linear", align_corners=True, size=1), LINE), [[[0]]])


@pytest.mark.parametrize(
    ("mode", "theirs"), [("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
@pytest.mark.parametrize("width", [0, 1, [(2, 0), 3], [3, (1, 4)]])
def test_padding_is_that_of_numpy(mode, theirs, width):
    sides = [(width, width)] * 2 if isinstance(width, int) else [(w, w) if isinstance(w, int) else w for w in width]
    np.testing.assert_array_equal(run(Pad(width, mode), X), np.pad(X, [(0, 0), (0, 0), *sides], mode=theirs))


def test_constant_padding_has_a_value():
    assert run(Pad([(1, 2)], value=-3.0), LINE).tolist() == [[[-3, 0, 4, 8, -3, -3]]]


def test_cropping_undoes_padding():
    for width in (0, 2, [(1, 0), (3, 2)]):
        np.testing.assert_array_equal(run(Crop(width), run(Pad(width), X)), X)


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sides", "layer", "text"),
    [
        ((4,), Upsample(2), r"1-upsample: upsample\(\(4,\)\): a sample must have channels and sides"),
        ((2, 5), Upsample((2, 2)), r"upsample\(\(2, 5\)\): factor \(2, 2\) has 2 entries for 1 side"),
        ((2, 5), Upsample(size=(2, 2)), r"upsample\(\(2, 5\)\): size \(2, 2\) has 2 entries for 1 side"),
        ((4,), Pad(1), r"pad\(\(4,\)\): a sample must have channels and sides. Put a Reshape"),
        ((2, 5), Pad([1, 1]), r"pad\(\(2, 5\)\): \[1, 1\] has 2 entries for 1 side.* or a pair \(before, after\)"),
        ((2, 5), Pad(5, "reflect"), r"pad.*: mode 'reflect' has 4 elements of a side of 5 to copy, not 5. Use less"),
        ((2, 5), Pad([(0, 6)], "circular"), r"pad.*: mode 'circular' has 5 elements of a side of 5 to copy, not 6"),
        ((2, 5), Crop([(2, 3)]), r"crop\(\(2, 5\)\): \(2, 3\) leaves nothing of a side of 5. Cut off less"),
        ((2, 5), Crop([(1, 1), 2]), r"crop\(\(2, 5\)\): .* has 2 entries for 1 side"),
    ],
)
def test_samples_that_do_not_fit_are_refused_with_a_remedy(sides, layer, text):
    with pytest.raises(SigmaNetworkError, match=text):
        Network.build(Input(*sides) + layer).declare({"inputs": Spec(sides)}, "float32", by_name)


@pytest.mark.parametrize("value", [-1, 1.0, True, [], [(1, 2, 3)], [(1, -1)], "same", None])
@pytest.mark.parametrize("make", [Pad, Crop])
def test_margins_are_numbers_or_pairs(make, value):
    with pytest.raises(
        SigmaNetworkError,
        match=rf"{make.__name__}.width: must be whole numbers of at least 0, one for all sides, or for each one or",
    ):
        make(value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Upsample(0), "Upsample.factor: must be a whole number of at least 1"),
        (lambda: Upsample(mode="cubic"), "mode.*nearest"),
        (lambda: Upsample(align_corners=True), 'Upsample.align_corners: has no effect with mode "nearest". Use mode'),
        (lambda: Upsample(3, size=9), r"Upsample.size: excludes a factor \(got 3\). Leave one of them out"),
        (lambda: Pad(1, "mirror"), "mode.*replicate"),
        (lambda: Pad(1, value=float("nan")), r"Pad.value: must be a finite number \(got nan\)"),
    ],
)
def test_settings_of_another_kind_are_refused(make, text):
    with pytest.raises((SigmaNetworkError, SigmaConfigError), match=text):
        make()
