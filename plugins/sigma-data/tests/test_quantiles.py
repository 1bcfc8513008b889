"""Preprocessors for skewed features: robust, quantile, log and clip.

Numbers of scikit-learn 1.9 are written out where no closed form is at hand.
"""

from __future__ import annotations

from functools import partial
from math import e
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_data import Log, QuantileTransform, RangeClip, Robust
from sigma_data.sampling import FEWEST, MOST, mix, sample_rows
from sigma_kernel import Preprocessor, SigmaConfigError, functions as f
from sigma_testing import PreprocessorSuite

SKEWED = np.exp(np.random.default_rng(0).normal(size=(500, 3))) * np.array([1.0, 100.0, 1e-3])


class _Skewed(PreprocessorSuite):
    def values(self) -> np.ndarray:
        return SKEWED[:40].astype(np.float32)


class TestRobust(_Skewed):
    def make(self) -> Preprocessor:
        return Robust()


class TestQuantile(_Skewed):
    def make(self) -> Preprocessor:
        return QuantileTransform(quantiles=17)


class TestQuantileOfIntegers(PreprocessorSuite):
    def make(self) -> Preprocessor:
        return QuantileTransform("uniform")

    def values(self) -> np.ndarray:
        return np.array([[3, 1], [3, 1], [5, 1], [-2, 1], [90, 1]], np.int32)


class TestLog(_Skewed):
    def make(self) -> Preprocessor:
        return Log(unit=0.5)


class TestClip(_Skewed):
    def make(self) -> Preprocessor:
        return RangeClip(share=0.1)


class TestClipToBounds(_Skewed):
    def make(self) -> Preprocessor:
        return RangeClip((0.5, 20.0))


def undo(step: Preprocessor, values: np.ndarray, state: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(f.evaluate(partial(step.inverse, state=state), np.asarray(values, np.float64)))


def test_the_median_becomes_0_and_the_interquartile_range_1() -> None:
    step = Robust()
    state = step.fit([np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, 7.0], [1000.0, 7.0]])])
    assert state["median"].tolist() == [3.0, 7.0]
    assert state["spread"].tolist() == [2.0, 1.0]  # from 2 to 4; a constant feature is only centred
    assert step.apply(np.array([[5.0, 7.0]]), state).tolist() == [[1.0, 0.0]]


def test_quantiles_become_the_numbers_of_a_normal_distribution_below_which_their_share_is() -> None:
    step = QuantileTransform(quantiles=5)
    state = step.fit([np.arange(101.0)[:, None]])
    scores = [NormalDist().inv_cdf(level) for level in (0.5 / 101, 0.25, 0.5, 0.75, 100.5 / 101)]
    found = step.apply(np.array([[0.0], [25.0], [50.0], [75.0], [100.0]]), state)[:, 0]
    np.testing.assert_allclose(found, scores, rtol=1e-12, atol=1e-12)


def test_a_uniform_distribution_is_linear_between_quantiles_and_constant_outside() -> None:
    step = QuantileTransform("uniform", quantiles=3)
    state = step.fit([np.array([0.0, 1.0, 2.0, 3.0, 10.0])[:, None]])
    found = step.apply(np.array([[-5.0], [0.0], [1.0], [2.0], [6.0], [10.0], [99.0]]), state)[:, 0]
    assert found.tolist() == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]


def test_equal_values_become_the_middle_of_their_levels_and_come_back() -> None:
    step = QuantileTransform("uniform")
    values = np.array([[0.0], [5.0], [5.0], [5.0], [9.0]])
    state = step.fit([values])
    changed = step.apply(values, state)
    assert changed[:, 0].tolist() == [0.0, 0.5, 0.5, 0.5, 1.0]
    assert undo(step, changed, state).tolist() == values.tolist()


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=60))
def test_the_order_of_values_is_kept_and_all_that_were_quantiles_come_back(values: list[float]) -> None:
    rows = np.array(values)[:, None]
    step = QuantileTransform()
    state = step.fit([rows])
    changed = step.apply(rows, state)
    assert (np.diff(changed[np.argsort(rows[:, 0], kind="stable"), 0]) >= 0).all()
    np.testing.assert_allclose(undo(step, changed, state), rows, rtol=1e-6, atol=1e-6 * max(1.0, np.ptp(rows)))


def test_samples_of_any_shape_have_a_function_for_each_number() -> None:
    images = np.random.default_rng(1).normal(size=(30, 2, 3)) * np.arange(1.0, 7.0).reshape(2, 3)
    step = QuantileTransform("uniform")
    state = step.fit([images])
    flat = step.apply(images.reshape(30, 6), step.fit([images.reshape(30, 6)]))
    assert np.array_equal(step.apply(images, state).reshape(30, 6), flat)


def test_a_logarithm_is_odd_and_linear_near_0() -> None:
    step = Log()
    found = step.apply(np.array([e - 1, 1 - e, 0.0, 1e-12]), {})
    np.testing.assert_allclose(found, [1.0, -1.0, 0.0, 1e-12], rtol=1e-11)
    np.testing.assert_allclose(undo(step, found, {}), [e - 1, 1 - e, 0.0, 1e-12], rtol=1e-11)


def test_what_is_outside_two_quantiles_becomes_them() -> None:
    step = RangeClip(share=0.25)
    values = np.array([[0.0], [1.0], [2.0], [3.0], [400.0]])
    assert step.apply(values, step.fit([values]))[:, 0].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert RangeClip((0.0, 2.5)).apply(values, {})[:, 0].tolist() == [0.0, 1.0, 2.0, 2.5, 2.5]
    assert step.inverse(f.symbol((2, 1), "float64", "x"), {}) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Robust((0.75, 0.25)), r"^Robust\.levels: must be two levels from 0 to 1, the lower one first"),
        (lambda: RangeClip((2.0, 1.0)), r"^RangeClip\.bounds: must be two numbers, the lower one first"),
        (lambda: RangeClip(share=0.5), r"^RangeClip\.share: must be less than 0\.5"),
        (lambda: QuantileTransform("gaussian"), r"^QuantileTransform\.target: must be 'normal' or 'uniform'"),
        (lambda: QuantileTransform(quantiles=1), r"^QuantileTransform\.quantiles: must be at least 2"),
        (lambda: Log(0.0), r"^Log\.unit: must be more than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: object, message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        make()  # type: ignore[operator]


# -- samples -----------------------------------------------------------------------------------------------------------
@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 50))
def test_a_sample_of_rows_does_not_depend_on_the_blocks(cuts: list[int], most: int) -> None:
    rows = np.arange(40) ** 2
    blocks = np.split(rows, sorted(cuts))
    whole, cut = sample_rows([rows], most), sample_rows(blocks, most)
    assert sorted(whole.tolist()) == sorted(cut.tolist())
    assert len(whole) == min(40, most)


def test_a_sample_has_the_quantiles_of_all_rows_within_its_stated_error() -> None:
    rows = 200_000
    most = 20_000
    sample = sample_rows(np.split(np.arange(rows), 10), most)
    levels = np.linspace(0, 1, 101)
    assert np.abs(np.quantile(sample, levels) / rows - levels).max() < np.sqrt(7.3 / most)


def test_the_hash_is_that_of_the_publication() -> None:
    assert [f"{key:016x}" for key in mix(np.array([0])).tolist()] == ["e220a8397b1dcdaf"]  # the first number of seed 0


def test_rows_of_many_features_have_a_smaller_sample() -> None:
    wide = np.broadcast_to(np.zeros(1, np.int8), (FEWEST, 4096))
    assert sample_rows([wide, wide, wide]).shape == (FEWEST, 4096)
    assert MOST == 1 << 20
