from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from sigma_initialisers import GlorotUniform
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import RandomInitialiserSuite, distance, draw

DENSE = Parameter((300, 100))
KERNEL = Parameter((64, 16, 5, 5), fan_in=16 * 25, fan_out=64 * 25)


class TestGlorotUniform(RandomInitialiserSuite):
    def make(self):
        return GlorotUniform()

    def deviation(self, parameter):
        return sqrt(2 / (parameter.fan_in + parameter.fan_out))


@pytest.mark.parametrize(("parameter", "fans"), [(DENSE, 400), (KERNEL, 80 * 25)])
@pytest.mark.parametrize(("gain", "factor"), [("linear", 1.0), ("tanh", 5 / 3), (0.5, 0.5)])
def test_the_bound_comes_from_both_fans_and_the_gain(parameter, fans, gain, factor):
    values = draw(GlorotUniform(gain), parameter, seed=1)
    bound = factor * sqrt(6.0 / fans)
    assert 0.999 * bound < np.abs(values).max() <= bound
    assert distance(values, lambda x: (x / bound + 1) / 2) < 1.95 / sqrt(values.size)


@pytest.mark.parametrize("gain", ["relou", -1.0, float("nan"), None])
def test_an_unknown_gain_is_refused(gain):
    with pytest.raises(SigmaError, match="Did you mean 'relu'" if gain == "relou" else "gain"):
        GlorotUniform(gain)
