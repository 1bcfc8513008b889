from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest

from sigma_initialisers import HeNormal
from sigma_kernel.contracts import Parameter
from sigma_testing import RandomInitialiserSuite, distance, draw

DENSE = Parameter((300, 100))
KERNEL = Parameter((64, 16, 5, 5), fan_in=16 * 25, fan_out=64 * 25)


class TestHeNormal(RandomInitialiserSuite):
    def make(self):
        return HeNormal()

    def deviation(self, parameter):
        return sqrt(2 / parameter.fan_in)


@pytest.mark.parametrize(("parameter", "fan", "width"), [(DENSE, "in", 300), (DENSE, "out", 100), (KERNEL, "in", 400)])
@pytest.mark.parametrize(("gain", "factor"), [("relu", sqrt(2)), ("leaky_relu", sqrt(2 / 1.0001)), (1.0, 1.0)])
def test_the_deviation_comes_from_one_fan_and_the_gain(parameter, fan, width, gain, factor):
    values = draw(HeNormal(gain, fan=fan), parameter, seed=1)
    law = NormalDist(0.0, factor / sqrt(width))
    assert abs(values.std() / law.stdev - 1) < 4 / sqrt(2 * values.size)
    assert distance(values, law.cdf) < 1.95 / sqrt(values.size)


def test_he_initialisation_keeps_the_size_of_signals_after_relu():
    signals = draw(HeNormal(1.0), Parameter((256, 400)), seed=2) * 16  # 256 features of variance 1 for 400 samples
    for layer in range(8):
        weights = draw(HeNormal(), Parameter((256, 256)), stream=layer)
        signals = np.maximum(weights.T @ signals, 0.0)
    assert 0.5 < (signals**2).mean() < 2.0
