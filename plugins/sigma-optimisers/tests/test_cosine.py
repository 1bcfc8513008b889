from __future__ import annotations

import numpy as np
import pytest

from sigma_optimisers import Cosine
from sigma_testing import ScheduleSuite


class TestCosine(ScheduleSuite):
    def make(self):
        return Cosine("3 epochs", 0.01)


def test_cosine_annealing_loses_a_quarter_after_a_third_and_ends_at_the_floor():
    factors = Cosine("300 iterations").factors(np.array([0, 100, 150, 200, 300]), np.zeros(5))
    assert factors == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0], abs=1e-15)


def test_the_factor_stays_at_the_floor():
    assert Cosine("3 epochs", 0.25).factors(np.arange(3), np.array([3, 4, 10**6])).tolist() == [0.25] * 3


def test_a_cosine_with_floor_one_is_constant():
    assert Cosine("3 epochs", 1.0).factors(np.arange(5), np.arange(5)).tolist() == [1.0] * 5
