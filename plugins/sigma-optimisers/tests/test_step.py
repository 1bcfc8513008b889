from __future__ import annotations

import numpy as np
import pytest

from sigma_optimisers import StepDecay
from sigma_testing import ScheduleSuite


class TestStep(ScheduleSuite):
    def make(self):
        return StepDecay("2 epochs", 0.1)


def test_the_factor_falls_exactly_at_the_end_of_each_interval():
    iterations = np.array([0, 99, 100, 199, 200, 1000])
    factors = StepDecay("100 iterations", 0.5).factors(iterations, iterations * 0)
    assert factors.tolist() == [1, 1, 0.5, 0.5, 0.25, 0.5**10]


def test_epochs_and_iterations_are_counted_separately():
    iterations, epochs = np.array([5, 15, 25, 35]), np.array([0, 1, 2, 3])
    assert StepDecay("2 epochs", 0.5).factors(iterations, epochs).tolist() == [1, 1, 0.5, 0.5]
    assert StepDecay("20 iterations", 0.5).factors(iterations, epochs * 0).tolist() == [1, 1, 0.5, 0.5]


@pytest.mark.parametrize("every", [3, 7, 10, 49])
def test_no_interval_ends_early_or_late_by_rounding(every):
    count = np.arange(3000)
    expected = [0.5 ** (t // every) for t in count.tolist()]
    assert StepDecay(f"{every} iterations", 0.5).factors(count, count).tolist() == expected


def test_a_factor_of_zero_ends_training_after_the_first_interval():
    assert StepDecay("1 epoch", 0.0).factors(np.arange(3), np.arange(3)).tolist() == [1.0, 0.0, 0.0]
