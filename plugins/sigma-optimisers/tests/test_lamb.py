from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import Lamb
from sigma_testing import GradientOptimiserSuite, Trial


class TestLamb(GradientOptimiserSuite):
    def make(self):
        return Lamb(0.01)

    def expected(self, start, gradients):
        """Follow algorithm 2 of the paper, with epsilon outside of the root."""
        values, first, second = [start], 0.0, 0.0
        for t, gradient in enumerate(gradients, 1):
            first = 0.9 * first + (1 - 0.9) * gradient
            second = 0.999 * second + (1 - 0.999) * gradient**2
            ratio = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-6) + 0.01 * values[-1]
            trust = np.linalg.norm(values[-1]) / np.linalg.norm(ratio)
            values.append(values[-1] - 0.01 * trust * ratio)
        return np.array(values[1:])


def test_the_step_is_a_fraction_of_the_norm_of_the_parameter():
    start = np.random.default_rng(0).normal(size=(4, 3))
    trial = Trial(Lamb(0.1), lambda p: f.sum(p["x"] * p["x"]), {"x": start})
    trial.run(1)
    assert np.linalg.norm(trial.values["x"] - start) == pytest.approx(0.1 * np.linalg.norm(start), rel=1e-12)


def test_a_parameter_of_zeros_moves_as_with_adam():
    trial = Trial(Lamb(0.1), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(2)})
    trial.run(1)
    assert trial.values["x"] == pytest.approx([-0.1, -0.1], rel=1e-6)


def test_a_gradient_of_zero_leaves_a_parameter_without_decay_alone():
    trial = Trial(Lamb(0.1, weight_decay=0.0), lambda p: f.sum(p["x"]) * 0.0, {"x": np.ones(2)})
    trial.run(3)
    assert trial.values["x"].tolist() == [1.0, 1.0]
