from __future__ import annotations

import numpy as np
import pytest

from sigma_optimisers import Exponential
from sigma_testing import ScheduleSuite


class TestExponential(ScheduleSuite):
    def make(self):
        return Exponential("1 epoch", 0.95)


def test_the_factor_applies_after_each_interval_and_its_root_half_way():
    factors = Exponential("100 iterations", 0.25).factors(np.array([0, 50, 100, 200]), np.zeros(4))
    assert factors == pytest.approx([1.0, 0.5, 0.25, 0.0625], rel=1e-15)


def test_a_factor_above_one_increases_the_rate():
    assert Exponential("1 epoch", 2.0).factors(np.arange(4), np.arange(4)).tolist() == [1, 2, 4, 8]
