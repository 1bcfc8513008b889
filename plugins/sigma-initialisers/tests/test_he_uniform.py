from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from sigma_initialisers import HeUniform
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import RandomInitialiserSuite, distance, draw

DENSE = Parameter((300, 100))
KERNEL = Parameter((64, 16, 5, 5), fan_in=16 * 25, fan_out=64 * 25)


class TestHeUniform(RandomInitialiserSuite):
    def make(self):
        return HeUniform()

    def deviation(self, parameter):
        return sqrt(2 / parameter.fan_in)


@pytest.mark.parametrize(("parameter", "fan", "width"), [(DENSE, "in", 300), (DENSE, "out", 100), (KERNEL, "in", 400)])
@pytest.mark.parametrize(("gain", "factor"), [("relu", sqrt(2)), ("selu", 0.75), (1.0, 1.0)])
def test_the_bound_comes_from_one_fan_and_the_gain(parameter, fan, width, gain, factor):
    values = draw(HeUniform(gain, fan=fan), parameter, seed=1)
    bound = factor * sqrt(3.0 / width)
    assert 0.999 * bound < np.abs(values).max() <= bound
    assert distance(values, lambda x: (x / bound + 1) / 2) < 1.95 / sqrt(values.size)


def test_a_fan_that_is_neither_in_nor_out_is_refused():
    with pytest.raises(SigmaError, match="fan: must be 'in' or 'out'"):
        HeUniform(fan="both")
