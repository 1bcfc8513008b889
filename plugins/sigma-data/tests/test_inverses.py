"""The inverses of preprocessors, which bring predictions back to the units of targets."""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np
import pytest

from sigma_data import Cast, Normalise, OneHot, Scale, Standardise
from sigma_kernel import Preprocessor, functions as f

ROWS = np.array([[1.0, -20.0], [3.0, 0.0], [5.0, 50.0]])  # means 3 and 10, variances 8 / 3 and 2600 / 3


def undone(step: Preprocessor, values: list[list[float]]) -> list[list[float]]:
    given = np.array(values, np.float64)
    return np.asarray(f.evaluate(partial(step.inverse, state=step.fit([ROWS])), given)).tolist()


CASES = {
    Standardise(): ([[0, 1], [-2, 0]], [[3, 10 + sqrt(2600 / 3)], [3 - 2 * sqrt(8 / 3), 10]]),
    Normalise(): ([[0, 0.5], [1, 2]], [[1, 15], [5, 120]]),
    Normalise(target=(-1.0, 1.0)): ([[0, 0.5], [1, 2]], [[3, 32.5], [5, 85]]),
    Normalise((0.0, 255.0)): ([[0, 0.5], [1, 2]], [[0, 127.5], [255, 510]]),
    Scale(0.5, -1.0): ([[0, 1], [-1, 2]], [[2, 4], [0, 6]]),
    Cast("float32"): ([[0.5, 1e9], [-1, 2]], [[0.5, 1e9], [-1, 2]]),
}


@pytest.mark.parametrize("step", CASES, ids=repr)
def test_an_inverse_returns_the_values_before(step: Preprocessor) -> None:
    given, wanted = CASES[step]
    np.testing.assert_allclose(undone(step, given), wanted, rtol=1e-15)


@pytest.mark.parametrize("step", CASES, ids=repr)
def test_an_inverse_returns_the_rows_of_the_training_split(step: Preprocessor) -> None:
    changed = step.apply(ROWS, step.fit([ROWS])).astype(np.float64)
    np.testing.assert_allclose(undone(step, changed.tolist()), ROWS, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("step", [Standardise(), Normalise()])
def test_a_constant_feature_comes_back_as_its_value(step: Preprocessor) -> None:
    constant = np.full((3, 2), 7.25)
    state = step.fit([constant])
    found = f.evaluate(partial(step.inverse, state=state), step.apply(constant, state))
    np.testing.assert_array_equal(found, constant)


@pytest.mark.parametrize("step", [OneHot(3), Scale(0.0)])
def test_what_cannot_be_undone_has_no_inverse(step: Preprocessor) -> None:
    assert step.inverse(f.symbol((2, 3), "float64", "x"), {}) is None
