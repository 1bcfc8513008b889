from __future__ import annotations

from math import exp, pi, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from sigma_initialisers import TruncatedNormal
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import RandomInitialiserSuite, distance, draw

SAMPLES = 40_000
NORMAL = NormalDist()
INSIDE = NORMAL.cdf(2.0) - NORMAL.cdf(-2.0)


class TestTruncatedNormal(RandomInitialiserSuite):
    def make(self):
        return TruncatedNormal(0.1)

    def deviation(self, parameter):
        return 0.1 * sqrt(1.0 - 2 * 2.0 * exp(-2.0) / sqrt(2 * pi) / INSIDE)


@pytest.mark.parametrize(("deviation", "mean"), [(0.1, 0.0), (3.0, -7.0)])
def test_values_follow_the_normal_distribution_between_their_bounds(deviation, mean):
    values = draw(TruncatedNormal(deviation, mean), Parameter((200, SAMPLES // 200)), seed=1)
    scores = (values - mean) / deviation
    assert 1.99 < np.abs(scores).max() <= 2.0 + 1e-12
    assert distance(scores, lambda x: (NORMAL.cdf(x) - NORMAL.cdf(-2.0)) / INSIDE) < 1.95 / sqrt(SAMPLES)
    left = sqrt(1.0 - 2 * 2.0 * exp(-2.0) / sqrt(2 * pi) / INSIDE)  # relative to the deviation; 0.8796
    assert abs(scores.std() - left) < 4 * left / sqrt(2 * SAMPLES)


def test_a_negative_deviation_is_refused():
    with pytest.raises(SigmaError, match="deviation"):
        TruncatedNormal(-0.1)
