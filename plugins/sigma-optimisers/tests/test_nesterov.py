from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import GradientDescent, Nesterov
from sigma_testing import GradientOptimiserSuite, Trial


class TestNesterov(GradientOptimiserSuite):
    def make(self):
        return Nesterov(0.05, 0.8)

    def expected(self, start, gradients):
        velocity = [sum(0.8 ** (n - i) * gradients[i] for i in range(n + 1)) for n in range(len(gradients))]
        return start - 0.05 * np.cumsum(gradients + 0.8 * np.array(velocity), axis=0)


def test_with_a_constant_gradient_each_step_looks_one_velocity_ahead():
    trial = Trial(Nesterov(0.1, 0.5), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(2)})
    trial.run(3)
    assert trial.slots["x", "velocity"] == pytest.approx(3.0 * (1 + 0.5 + 0.25), rel=1e-14)
    assert trial.values["x"] == pytest.approx(-0.1 * 3.0 * (1.5 + 1.75 + 1.875), rel=1e-14)


def test_without_momentum_it_is_gradient_descent():
    plain, still = Trial(GradientDescent(0.1)), Trial(Nesterov(0.1, 0.0))
    assert plain.run(5) == still.run(5)
