from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import pytest

from sigma_initialisers import LecunNormal, LecunUniform
from sigma_kernel.contracts import Parameter
from sigma_testing import RandomInitialiserSuite, distance, draw

DENSE = Parameter((300, 100))
KERNEL = Parameter((64, 16, 5, 5), fan_in=16 * 25, fan_out=64 * 25)


class TestLecunNormal(RandomInitialiserSuite):
    def make(self):
        return LecunNormal()

    def deviation(self, parameter):
        return 1 / sqrt(parameter.fan_in)


class TestLecunUniform(TestLecunNormal):
    def make(self):
        return LecunUniform()


@pytest.mark.parametrize(("parameter", "width"), [(DENSE, 300), (KERNEL, 400)])
def test_the_distributions_follow_from_the_fan_in(parameter, width):
    normal, uniform = (draw(made, parameter, seed=1) for made in (LecunNormal(), LecunUniform()))
    assert distance(normal, NormalDist(0.0, 1 / sqrt(width)).cdf) < 1.95 / sqrt(normal.size)
    bound = sqrt(3 / width)
    assert distance(uniform, lambda x: (x + bound) / (2 * bound)) < 1.95 / sqrt(uniform.size)


def test_lecun_initialisation_keeps_the_size_of_signals_without_a_nonlinearity():
    signals = draw(LecunNormal(), Parameter((256, 400)), seed=2) * 16  # 256 features of variance 1 for 400 samples
    for layer in range(8):
        signals = draw(LecunUniform(), Parameter((256, 256)), stream=layer).T @ signals
    assert 0.5 < (signals**2).mean() < 2.0
