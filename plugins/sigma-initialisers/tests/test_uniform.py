from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from sigma_initialisers import Uniform
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import RandomInitialiserSuite, distance, draw

SAMPLES = 40_000


class TestUniform(RandomInitialiserSuite):
    mean = -0.125

    def make(self):
        return Uniform(-0.5, 0.25)

    def deviation(self, parameter):
        return 0.75 / sqrt(12)


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.25), (3.0, 1000.0), (-1e-12, 1e-12)])
def test_values_are_uniform_over_the_interval(low, high):
    values = draw(Uniform(low, high), Parameter((SAMPLES,)), seed=1)
    assert low <= values.min() < low + (high - low) * 1e-3
    assert high - (high - low) * 1e-3 < values.max() <= high
    assert distance(values, lambda x: (x - low) / (high - low)) < 1.95 / sqrt(SAMPLES)


def test_a_uniform_distribution_over_a_point_gives_that_point():
    assert np.array_equal(draw(Uniform(0.5, 0.5), Parameter((4,))), np.full(4, 0.5))


def test_an_interval_that_ends_before_it_starts_is_refused():
    with pytest.raises(SigmaError, match=r"low = 1.0 is above high = 0.5\. Swap them"):
        Uniform(1.0, 0.5)


@pytest.mark.parametrize("bad", [float("-inf"), float("nan"), "low"])
def test_non_finite_bounds_are_refused(bad):
    with pytest.raises(SigmaError, match="low"):
        Uniform(bad, 0.5)
