"""Augmentations compute what numpy or a closed form says."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest

from sigma_data import (
    Colour,
    CutOut,
    Flip,
    Jitter,
    MaskSteps,
    MaskTokens,
    MixUp,
    RandomCrop,
    Rotate,
    Sunspots,
    TimeShift,
    Zoom,
)
from sigma_data.augmentations.colour import recolour
from sigma_data.augmentations.mix_up import draw_beta
from sigma_data.augmentations.rotate import turn
from sigma_data.augmentations.scale import zoom
from sigma_kernel import Augmentation, SigmaConfigError, SigmaDataError
from sigma_kernel.graph import RowDraws

RNG = np.random.default_rng(0)
FLOATS = RNG.normal(size=(40, 3, 6, 5)).astype(np.float32)
BYTES = RNG.integers(0, 256, (40, 3, 6, 5)).astype(np.uint8)
PICTURES = pytest.mark.parametrize("pictures", [FLOATS, BYTES, FLOATS[:, 0]], ids=["floats", "bytes", "grey"])


def draw(rows: int, epoch: int = 0) -> RowDraws:
    return RowDraws(3, 1, epoch, np.arange(rows))


def varied(augmentation: Augmentation, values: np.ndarray) -> np.ndarray:
    return augmentation.augment({"inputs": values}, draw(len(values)))["inputs"]


def test_what_an_augmentation_draws_are_its_own_numbers() -> None:
    again = draw(40)
    assert np.array_equal(again.uniform(), draw(40).uniform())
    assert not np.array_equal(again.uniform(), draw(40).uniform())


# -- pictures ----------------------------------------------------------------------------------------------------------
@PICTURES
@pytest.mark.parametrize(("setting", "axis"), [("horizontal", -1), ("vertical", -2)])
def test_flip_mirrors_the_share_of_the_pictures(pictures: np.ndarray, setting: str, axis: int) -> None:
    settings = {"horizontal": 0.0, "vertical": 0.0}
    assert np.array_equal(varied(Flip(**settings), pictures), pictures)
    assert np.array_equal(varied(Flip(**settings | {setting: 1.0}), pictures), np.flip(pictures, axis))
    half = varied(Flip(**settings | {setting: 0.5}), pictures)
    turned = np.array([np.array_equal(new, np.flip(old, axis)) for new, old in zip(half, pictures, strict=True)])
    assert 10 < turned.sum() < 30
    assert np.array_equal(half[~turned], pictures[~turned])


@PICTURES
def test_flip_turns_both_ways_independently(pictures: np.ndarray) -> None:
    forms = [np.flip(pictures, axes) for axes in ((), (-1,), (-2,), (-1, -2))]
    result = varied(Flip(0.5, 0.5), pictures)
    which = [next(n for n, form in enumerate(forms) if np.array_equal(form[row], result[row])) for row in range(40)]
    assert {*which} == {0, 1, 2, 3}


@PICTURES
@pytest.mark.parametrize("border", ["constant", "edge", "reflect"])
def test_crop_is_a_window_of_the_padded_picture(pictures: np.ndarray, border: str) -> None:
    result, p = varied(RandomCrop(2, border), pictures), 2  # type: ignore[arg-type]
    padded = np.pad(pictures, [(0, 0)] * (pictures.ndim - 2) + [(p, p)] * 2, border)  # type: ignore[call-overload]
    places = set()
    for row in range(40):
        fits = [
            (y, x)
            for y in range(2 * p + 1)
            for x in range(2 * p + 1)
            if np.array_equal(padded[row][..., y : y + 6, x : x + 5], result[row])
        ]
        assert fits
        places.add(fits[0])
    assert len(places) > 12, "moved to many places"
    assert {y for y, _ in places} == {x for _, x in places} == {0, 1, 2, 3, 4}


def test_crop_fills_with_a_value() -> None:
    result = varied(RandomCrop(6, fill=9.0), np.zeros((40, 3, 3)))
    assert {*np.unique(result)} == {0.0, 9.0}


@pytest.mark.parametrize("quarters", [1, 2, 3, 4])
@pytest.mark.parametrize("pictures", [FLOATS[..., :5, :], BYTES[..., :5, :], FLOATS[:, 0, :5]])
def test_a_turn_by_quarters_is_that_of_numpy(pictures: np.ndarray, quarters: int) -> None:
    turned = turn(pictures, np.full(len(pictures), 90.0 * quarters), 0.0)
    np.testing.assert_allclose(turned, np.rot90(pictures, quarters, (-2, -1)), rtol=1e-6, atol=1e-6)
    assert turned.dtype == pictures.dtype


def test_a_picture_linear_in_its_place_is_turned_exactly() -> None:
    y, x = np.mgrid[:21, :21] - 10.0
    angle = np.deg2rad(25.0)
    inner = (abs(y) < 5) & (abs(x) < 5)
    turned = turn((3 * x - 2 * y)[None], np.array([25.0]), 0.0)[0]
    came_from = 3 * (np.cos(angle) * x - np.sin(angle) * y) - 2 * (np.sin(angle) * x + np.cos(angle) * y)
    np.testing.assert_allclose(turned[inner], came_from[inner], rtol=1e-12, atol=1e-12)


def test_corners_that_a_turned_picture_does_not_reach_are_filled() -> None:
    turned = turn(np.zeros((1, 9, 9), np.uint8), np.array([45.0]), 200.0)
    assert (turned[0, [0, 0, -1, -1], [0, -1, 0, -1]] == 200).all()
    assert turned[0, 4, 4] == 0


def test_rotate_draws_angles_up_to_the_greatest_in_both_directions() -> None:
    x = (np.mgrid[:21, :21][1] - 10.0)[None].repeat(200, 0)
    right = varied(Rotate(30.0), x)[:, 10, 15]  # x in the middle row, at distance 5: 5 cos(angle)
    below = varied(Rotate(30.0), x)[:, 15, 10]  # -5 sin(angle)
    assert right.min() >= 5 * sqrt(3) / 2 - 1e-9
    assert below.min() < -2.3
    assert below.max() > 2.3
    np.testing.assert_allclose(right**2 + below**2, 25.0)
    np.testing.assert_array_equal(varied(Rotate(0.0), x), x)


def test_scale_enlarges_about_the_middle_and_frames_what_is_reduced() -> None:
    x = (np.mgrid[:21, :21][1] - 10.0)[None]
    np.testing.assert_allclose(zoom(x, np.array([2.0]), 0.0)[0], x[0] / 2, atol=1e-12)
    reduced = zoom(x, np.array([0.5]), 7.0)[0]
    np.testing.assert_allclose(reduced[5:16, 5:16], x[0, 5:16, 5:16] * 2, atol=1e-12)
    assert (reduced[:4] == 7.0).all()
    assert (reduced[:, -4:] == 7.0).all()
    np.testing.assert_array_equal(zoom(BYTES, np.ones(40), 0.0), BYTES)


def test_scale_draws_factors_between_the_least_and_the_greatest() -> None:
    x = (np.mgrid[:21, :21][1] - 10.0)[None].repeat(200, 0)
    factors = 5.0 / varied(Zoom((0.8, 1.25)), x)[:, 10, 15]
    assert 0.8 <= factors.min() < 0.81
    assert 1.23 < factors.max() <= 1.25 + 1e-12
    assert abs(np.log(factors).mean()) < 0.03


def test_colours_are_those_of_the_formulas() -> None:
    values = FLOATS.astype(np.float64)
    grey = 0.299 * values[:, 0] + 0.587 * values[:, 1] + 0.114 * values[:, 2]
    one = np.ones(40)
    bright = recolour(values, np.stack([one * 1.5, one, one], 1))
    np.testing.assert_allclose(bright, values * 1.5)
    mean = grey.mean(axis=(1, 2))[:, None, None, None]
    np.testing.assert_allclose(recolour(values, np.stack([one, one * 0.25, one], 1)), mean + (values - mean) / 4)
    plain = recolour(values, np.stack([one, one, one * 0], 1))
    np.testing.assert_allclose(plain, grey[:, None].repeat(3, 1))
    np.testing.assert_allclose(recolour(values, np.ones((40, 3))), values)


def test_colours_of_bytes_are_rounded_and_limited_and_grey_pictures_have_no_saturation() -> None:
    factors = np.stack([np.full(40, 1.7), np.ones(40), np.ones(40)], 1)
    wanted = np.minimum(np.rint(BYTES * 1.7), 255)
    assert np.array_equal(recolour(BYTES, factors), wanted)
    for grey in (BYTES[:, :1], BYTES[:, 0]):
        assert np.array_equal(varied(Colour(0, 0, 1.0), grey), grey)
        assert not np.array_equal(varied(Colour(0.5), grey), grey)


def test_cut_out_covers_a_square_around_any_pixel() -> None:
    covered = varied(CutOut(3, fill=-1.0), np.zeros((400, 2, 7, 6))) == -1.0
    assert np.array_equal(covered[:, 0], covered[:, 1])
    for picture in covered[:, 0]:
        y, x = np.nonzero(picture)
        height, width = np.ptp(y) + 1, np.ptp(x) + 1
        assert picture.sum() == height * width, "a rectangle"
        assert 2 <= height <= 3
        assert 2 <= width <= 3
        assert height == 3 or y.min() == 0 or y.max() == 6
    assert covered.any(axis=0).all()
    assert np.array_equal(varied(CutOut(99), BYTES), np.zeros_like(BYTES))


def test_a_value_of_a_frame_is_limited_to_the_range_of_the_type() -> None:
    for augmentation in (RandomCrop(2, fill=300.0), CutOut(3, fill=300.0), Rotate(180.0, fill=300.0)):
        result = varied(augmentation, np.zeros((40, 6, 6), np.uint8))
        assert (result.dtype, result.max()) == (np.uint8, 255)


# -- numbers -----------------------------------------------------------------------------------------------------------
def test_noise_has_its_deviation_and_bytes_stay_in_their_range() -> None:
    added = varied(Jitter(2.0), np.zeros((200, 101)))
    assert abs(added.mean()) < 0.05
    assert abs(added.std() - 2.0) < 0.05
    assert abs(np.corrcoef(added[:, 0], added[:, 51])[0, 1]) < 0.3
    noisy = varied(Jitter(50.0), np.tile(np.array([0, 255], np.uint8), (100, 5)))
    assert noisy.dtype == np.uint8
    assert (noisy[:, ::2] <= 250).all()
    assert (noisy[:, 1::2] >= 5).all()


@pytest.mark.parametrize("wrap", [True, False])
def test_time_shift_is_a_roll_or_repeats_the_end(wrap: bool) -> None:
    series = np.arange(40 * 7 * 2).reshape(40, 7, 2)
    result, seen = varied(TimeShift(2, wrap), series), set()
    for old, new in zip(series, result, strict=True):
        padded = np.concatenate([old[:1], old[:1], old, old[-1:], old[-1:]])
        forms = {s: np.roll(old, s, 0) if wrap else padded[2 - s : 9 - s] for s in range(-2, 3)}
        seen |= {shift for shift, form in forms.items() if np.array_equal(form, new)}
    assert seen == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_masked_steps_are_a_run_of_any_length_at_any_place(axis: int) -> None:
    values = RNG.normal(size=(4000, 6, 7, 5)).astype(np.float32)
    masked = varied(MaskSteps(3, fill=-9.0, axis=axis), values)
    hidden = np.moveaxis(masked == -9, 1 + axis, 1).reshape(4000, values.shape[1 + axis], -1)
    assert np.array_equal(hidden.any(axis=2), hidden.all(axis=2))
    assert np.array_equal(masked[masked != -9], values[masked != -9])
    runs, length = hidden[:, :, 0], values.shape[1 + axis]
    sizes = runs.sum(axis=1)
    assert (np.abs(np.diff(np.pad(runs.astype(int), ((0, 0), (1, 1))), axis=1)).sum(axis=1) == 2 * (sizes > 0)).all()
    assert abs(np.bincount(sizes, minlength=4) / 1000 - 1).max() < 0.12  # uniform from 0 to 3
    for size in (1, 2, 3):
        firsts = np.bincount(runs[sizes == size].argmax(axis=1))
        assert len(firsts) == length - size + 1
        assert (abs(firsts - firsts.mean()) < 5 * np.sqrt(firsts.mean())).all()


def test_several_runs_are_masked_and_a_run_is_no_longer_than_the_sequence() -> None:
    values = RNG.normal(size=(600, 9))
    masks = [varied(MaskSteps(2, times), values) == 0 for times in (1, 2)]
    assert np.array_equal(masks[0] | masks[1], masks[1])  # the first run is the same
    assert masks[1].sum(axis=1).max() == 4
    assert {*(varied(MaskSteps(99), values) == 0).sum(axis=1)} == {*range(10)}
    assert varied(MaskSteps(9, fill=300.0), np.zeros((9, 9), np.uint8)).max() == 255


# -- windows of series -------------------------------------------------------------------------------------------------
@pytest.mark.long_cases("40")
@pytest.mark.parametrize("steps", [3, 40])
def test_shifted_windows_of_a_series_are_those_of_the_series_shifted(steps: int) -> None:
    windows = Sunspots(past=24, ahead=2)["training"].block(0)
    rows = slice(0, 200)
    block = {name: values[rows] for name, values in windows.items()}
    shifted = TimeShift(steps).augment(block, draw(200))
    assert np.array_equal(shifted["targets"], block["targets"])
    seen = set()
    for old, new in zip(block["inputs"], shifted["inputs"], strict=True):
        frame = pd.DataFrame(old)
        forms = {s: frame.shift(s).bfill().ffill() for s in range(-min(steps, 23), min(steps, 23) + 1)}
        seen |= {shift for shift, form in forms.items() if np.array_equal(form, new)}
    assert {-3, -2, -1, 0, 1, 2, 3} <= seen


def test_masked_windows_of_a_series_keep_what_is_not_masked() -> None:
    windows = Sunspots(past=24, ahead=2)["training"].block(0)
    block = {name: values[:200] for name, values in windows.items()}
    times, columns = (MaskSteps(4, fill=-5.0, axis=axis).augment(block, draw(200))["inputs"] for axis in (0, 1))
    assert ((times == -5).all(axis=2) == (times == -5).any(axis=2)).all()
    assert (columns == -5).all(axis=1).any()
    assert np.array_equal(block["inputs"][times != -5], times[times != -5])
    assert not windows["inputs"].flags.writeable


def test_mask_tokens_hides_the_share_and_keeps_padding() -> None:
    tokens = np.tile(np.arange(10, dtype=np.int32), (400, 1))
    hidden = varied(MaskTokens(11, share=0.3, keep=(0, 4)), tokens)
    assert hidden.dtype == np.int32
    assert np.array_equal(hidden[:, [0, 4]], tokens[:, [0, 4]])
    assert {*np.unique(hidden[hidden != tokens])} == {11}
    assert abs((hidden == 11)[:, [1, 2, 3, 5, 6, 7, 8, 9]].mean() - 0.3) < 0.03


# -- mix_up ------------------------------------------------------------------------------------------------------------
def test_mix_up_mixes_inputs_and_targets_by_the_same_share() -> None:
    inputs, targets = np.arange(64.0)[:, None].repeat(3, 1), np.eye(64, dtype=np.float32)
    mixed = MixUp(1.0).augment({"inputs": inputs, "targets": targets, "weights": np.ones(64)}, draw(64))
    assert np.array_equal(mixed["weights"], np.ones(64))
    np.testing.assert_allclose(mixed["targets"].sum(axis=1), 1.0, rtol=1e-6)
    assert ((mixed["targets"] > 0).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(mixed["targets"] @ np.arange(64.0), mixed["inputs"][:, 0], rtol=1e-5)
    others = [np.flatnonzero(row).tolist() for row in mixed["targets"]]
    assert len({tuple(pair) for pair in others}) > 50


@pytest.mark.parametrize("alpha", [0.01, 0.2, 0.7, 1.0])
def test_shares_are_of_the_beta_distribution(alpha: float) -> None:
    shares = draw_beta(draw(20_000), alpha)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert abs(shares.mean() - 0.5) < 0.015
    assert abs(shares.var() - 1 / (4 * (2 * alpha + 1))) < 0.005
    least = 0.1 if alpha == 1 else None  # uniform
    assert least is None or abs((shares < least).mean() - least) < 0.01


def test_mix_up_refuses_class_indices() -> None:
    block = {"inputs": FLOATS, "targets": np.arange(40, dtype=np.int32)}
    with pytest.raises(SigmaDataError, match=r"mix_up: section 'targets' holds int32: class indices, .*numpy\.eye"):
        MixUp().augment(block, draw(40))
    assert np.array_equal(MixUp(targets=()).augment(block, draw(40))["targets"], block["targets"])


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("augmentation", "values", "words"),
    [
        (Flip(), np.zeros((4, 64)), r"flip: section 'inputs' has samples of shape \(64,\).*reshape"),
        (Flip(section="picture"), FLOATS, "flip: the data has no section 'picture', only inputs"),
        (Jitter(), np.array([["a"]]), "noise: section 'inputs' holds <U1. It takes numbers"),
        (RandomCrop(6, "reflect"), FLOATS, r"crop: pictures of \(6, 5\) cannot be mirrored by 6"),
        (Colour(), np.zeros((4, 2, 6, 6)), "colour: pictures have 2 channels"),
        (TimeShift(), np.zeros(4), "time_shift: section 'inputs' has numbers, not sequences"),
        (
            MaskSteps(),
            np.zeros(4),
            r"mask_steps: .* samples of shape \(\), without an axis 0 to mask",
        ),
        (MaskSteps(axis=1), np.zeros((4, 3)), r"shape \(3,\), without an axis 1 to mask. Set `axis` or `section`"),
        (MaskTokens(3), np.zeros((4, 3)), "mask_tokens: section 'inputs' holds float64. It takes indices"),
        (MaskTokens(300), np.zeros((4, 3), np.uint8), "mask_tokens: 300 is beyond uint8"),
    ],
)
def test_sections_that_do_not_fit_are_refused(augmentation: Augmentation, values: np.ndarray, words: str) -> None:
    with pytest.raises(SigmaDataError, match=words):
        varied(augmentation, values)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Flip, {"horizontal": 1.5}),
        (RandomCrop, {"padding": 0}),
        (Rotate, {"degrees": 181.0}),
        (Zoom, {"factors": (1.2, 0.8)}),
        (Colour, {"contrast": -0.1}),
        (Jitter, {"deviation": -1.0}),
        (CutOut, {"size": 0}),
        (MixUp, {"alpha": 0.0}),
        (TimeShift, {"steps": 0}),
        (MaskSteps, {"steps": 0}),
        (MaskSteps, {"times": 0}),
        (MaskTokens, {"token": -1}),
    ],
)
def test_settings_out_of_range_are_refused(kind: type[Augmentation], settings: dict[str, float]) -> None:
    with pytest.raises(SigmaConfigError, match=next(iter(settings))):
        kind(**settings)
