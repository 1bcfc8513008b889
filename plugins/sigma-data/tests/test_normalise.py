from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from sigma_data import Normalise
from sigma_kernel import SigmaDataError

VALUES = npst.arrays("f8", st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(-1e6, 1e6))


@given(VALUES, st.floats(-5, 5), st.floats(0.5, 5))
def test_the_training_split_fills_the_range_of_each_feature(values, low, width):
    step = Normalise(target=(low, low + width))
    changed = step.apply(values, step.fit([values]))
    constant = np.ptp(values, axis=0) == 0
    np.testing.assert_allclose(changed.min(axis=0), low, atol=1e-9)
    np.testing.assert_allclose(changed.max(axis=0), np.where(constant, low, low + width), atol=1e-9)


def test_an_explicit_range_needs_no_fit():
    step = Normalise((0, 255), (-1, 1))
    assert step.fit([np.zeros((2, 2))]) == {}
    assert step.apply(np.array([[0, 255], [51, 102]], np.uint8), {}).tolist()[0] == [-1.0, 1.0]
    assert step.apply(np.array([[51.0]]), {}) == pytest.approx(-0.6)


def test_values_outside_the_fitted_range_map_outside_the_target():
    step = Normalise()
    state = step.fit([np.array([[0.0], [10.0]])])
    assert step.apply(np.array([[-5.0], [20.0]]), state).ravel().tolist() == [-0.5, 2.0]


@pytest.mark.parametrize(("given", "kept"), [("u1", "f8"), ("i8", "f8"), ("f2", "f2"), ("f4", "f4"), ("f8", "f8")])
def test_floats_keep_their_dtype_and_integers_become_float64(given, kept):
    step, values = Normalise(), np.array([[0], [3]], given)
    assert step.apply(values, step.fit([values])).dtype == kept


@pytest.mark.parametrize("wrong", [(1.0, 1.0), (2.0, 1.0), (float("nan"), 1.0)])
def test_an_invalid_range_is_reported(wrong):
    with pytest.raises(SigmaDataError, match="source: .* is not a range"):
        Normalise(wrong)
    with pytest.raises(SigmaDataError, match="target: .* is not a range"):
        Normalise(target=wrong)


def test_the_range_is_that_of_all_blocks():
    state = Normalise().fit([np.array([[1, 5]]), np.array([[3, -2], [0, 0]])])
    assert (state["low"].tolist(), state["high"].tolist()) == ([0, -2], [3, 5])
