from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.testing import ScheduleSuite
from sigma_optimisers import Cosine


class TestCosine(ScheduleSuite):
    def make(self):
        return Cosine("3 epochs", 0.01)


def test_a_third_of_the_way_takes_a_quarter_and_the_end_is_the_floor():
    factors = Cosine("300 iterations").factors(np.array([0, 100, 150, 200, 300]), np.zeros(5))
    assert factors == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0], abs=1e-15)


def test_it_stays_at_the_floor():
    assert Cosine("3 epochs", 0.25).factors(np.arange(3), np.array([3, 4, 10**6])).tolist() == [0.25] * 3


def test_a_floor_of_one_changes_nothing():
    assert Cosine("3 epochs", 1.0).factors(np.arange(5), np.arange(5)).tolist() == [1.0] * 5
