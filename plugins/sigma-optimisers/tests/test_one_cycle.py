from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import OneCycle
from sigma_testing import ScheduleSuite


class TestOneCycle(ScheduleSuite):
    def make(self):
        return OneCycle("30 iterations")


def test_one_cycle_starts_low_peaks_once_and_ends_lower():
    factors = OneCycle("10 iterations", 0.5, 0.2, 0.01).factors(np.arange(12), np.zeros(12))
    assert factors[[0, 2, 4, 9, 10, 11]] == pytest.approx([0.2, 0.6, 1.0, 0.01, 0.01, 0.01])
    assert (np.diff(factors[:5]) > 0).all()
    assert (np.diff(factors[4:10]) < 0).all()


def test_linear_annealing_rises_and_falls_linearly():
    factors = OneCycle("9 iterations", 5 / 9, 0.0, 0.0, "linear").factors(np.arange(9), np.zeros(9))
    assert factors == pytest.approx([0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0], abs=1e-15)


@pytest.mark.parametrize(("total", "rise"), [("10 epochs", 0.0), ("10 epochs", 1.0), ("3 iterations", 0.3)])
def test_a_rise_or_fall_shorter_than_one_step_is_refused(total, rise):
    with pytest.raises(SigmaConfigError, match="one_cycle: rises for .* rise and fall must each last a step"):
        OneCycle(total, rise)


def test_a_cycle_of_epochs_moves_with_every_iteration():
    epochs = np.arange(10) / 4  # of four iterations
    factors = OneCycle("2 epochs", 0.5, 0.0, 0.0, "linear").factors(np.arange(10), epochs)
    assert factors.tolist() == [0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0, 0]


def test_an_unknown_curve_is_refused():
    with pytest.raises(SigmaConfigError, match="curve"):
        OneCycle("10 epochs", curve="round")
