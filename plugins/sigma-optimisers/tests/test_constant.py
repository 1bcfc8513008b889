from __future__ import annotations

import numpy as np

from sigma_optimisers import ConstantFactor
from sigma_testing import ScheduleSuite


class TestConstant(ScheduleSuite):
    def make(self):
        return ConstantFactor(0.3)


def test_the_factor_is_the_same_at_all_times():
    assert ConstantFactor(0.3).factors(np.arange(3), np.zeros(3)).tolist() == [0.3, 0.3, 0.3]
    assert ConstantFactor().factors(np.array([10**9]), np.array([10**6])).tolist() == [1.0]
