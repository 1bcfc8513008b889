from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import pytest

from sigma_initialisers import GlorotNormal
from sigma_kernel.contracts import Parameter
from sigma_testing import RandomInitialiserSuite, distance, draw

DENSE = Parameter((300, 100))
KERNEL = Parameter((64, 16, 5, 5), fan_in=16 * 25, fan_out=64 * 25)


class TestGlorotNormal(RandomInitialiserSuite):
    def make(self):
        return GlorotNormal()

    def deviation(self, parameter):
        return sqrt(2 / (parameter.fan_in + parameter.fan_out))


@pytest.mark.parametrize(("parameter", "fans"), [(DENSE, 400), (KERNEL, 80 * 25)])
@pytest.mark.parametrize(("gain", "factor"), [("linear", 1.0), ("tanh", 5 / 3), (0.5, 0.5)])
def test_the_deviation_comes_from_both_fans_and_the_gain(parameter, fans, gain, factor):
    values = draw(GlorotNormal(gain), parameter, seed=1)
    law = NormalDist(0.0, factor * sqrt(2.0 / fans))
    assert abs(values.std() / law.stdev - 1) < 4 / sqrt(2 * values.size)
    assert distance(values, law.cdf) < 1.95 / sqrt(values.size)
