from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import GradientDescent
from sigma_testing import GradientOptimiserSuite, Trial


class TestGradientDescent(GradientOptimiserSuite):
    def make(self):
        return GradientDescent(0.1)

    def expected(self, start, gradients):
        return start - 0.1 * np.cumsum(gradients, axis=0)


def test_on_a_parabola_each_step_leaves_the_same_fraction():
    trial = Trial(GradientDescent(0.1), lambda p: f.sum(p["x"] * p["x"]) * 0.5, {"x": np.array([2.0, -3.0])})
    trial.run(5)
    assert trial.values["x"] == pytest.approx(np.array([2.0, -3.0]) * 0.9**5, rel=1e-14)


def test_a_learning_rate_of_zero_changes_nothing():
    trial = Trial(GradientDescent(0.0))
    trial.run(2)
    assert all(np.array_equal(trial.values[address], start) for address, start in trial.start.items())
