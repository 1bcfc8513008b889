from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest

from sigma_initialisers import Gaussian
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import RandomInitialiserSuite, distance, draw

SAMPLES = 40_000


class TestGaussian(RandomInitialiserSuite):
    def make(self):
        return Gaussian(0.1)

    def deviation(self, parameter):
        return 0.1


@pytest.mark.parametrize(("deviation", "mean"), [(0.1, 0.0), (3.0, -7.0), (1e-12, 0.0)])
def test_values_follow_the_normal_distribution(deviation, mean):
    values = draw(Gaussian(deviation, mean), Parameter((200, SAMPLES // 200)), seed=1)
    assert distance(values, NormalDist(mean, deviation).cdf) < 1.95 / sqrt(SAMPLES)  # false alarms: 1 in 1,000
    assert abs(values.mean() - mean) < 4 * deviation / sqrt(SAMPLES)
    assert abs(values.std() / deviation - 1) < 4 / sqrt(2 * SAMPLES)


def test_neighbouring_random_numbers_are_uncorrelated():
    rows = draw(Gaussian(1.0), Parameter((200, 200)), seed=2)
    for a, b in ((rows[1:], rows[:-1]), (rows[:, 1:], rows[:, :-1])):
        assert abs((a * b).mean()) < 4 / sqrt(a.size)


def test_without_deviation_all_values_are_the_mean():
    assert np.array_equal(draw(Gaussian(0.0, 0.5), Parameter((4,))), np.full(4, 0.5))


@pytest.mark.parametrize("settings", [{"deviation": -1e-300}, {"deviation": "wide"}, {"deviation": 1, "mean": np.nan}])
def test_impossible_settings_are_refused_by_name(settings):
    with pytest.raises(SigmaError, match=list(settings)[-1]):
        Gaussian(**settings)
