from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import Cyclic
from sigma_testing import ScheduleSuite


class TestCyclic(ScheduleSuite):
    def make(self):
        return Cyclic("3 iterations", "5 iterations", 0.1, 0.5)


def test_cyclic_factors_are_triangles_between_low_and_one():
    factors = Cyclic("2 iterations", "4 iterations", 0.5).factors(np.arange(13), np.zeros(13))
    triangle = [0.5, 0.75, 1, 0.875, 0.75, 0.625]
    assert factors == pytest.approx([*triangle, *triangle, 0.5])


def test_the_amplitude_shrinks_with_each_cycle():
    factors = Cyclic("1 epoch", low=0.0, shrink=0.5).factors(np.zeros(6), np.arange(6))
    assert factors == pytest.approx([0, 1, 0, 0.5, 0, 0.25])


def test_two_units_are_refused():
    with pytest.raises(SigmaConfigError, match="cyclic: '1 epoch' and '5 iterations' have different units"):
        Cyclic("1 epoch", "5 iterations")
