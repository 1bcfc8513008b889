from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import Lion
from sigma_testing import GradientOptimiserSuite, Trial


class TestLion(GradientOptimiserSuite):
    def make(self):
        return Lion(0.1, weight_decay=0.1)

    def expected(self, start, gradients):
        """Follow program 1 of the paper."""
        p, m, values = start, np.zeros_like(start), []
        for g in gradients:
            update = m * 0.9 + g * (1 - 0.9)
            update = np.sign(update)
            m = m * 0.99 + g * (1 - 0.99)
            update = update + p * 0.1
            p = p + update * -0.1
            values.append(p)
        return np.array(values)


def test_every_element_moves_by_the_learning_rate_whatever_the_gradient():
    trial = Trial(Lion(0.25), lambda p: f.sum(p["x"] * np.array([1e-6, -3.0, 0.0])), {"x": np.zeros(3)})
    trial.run(2)
    assert trial.values["x"].tolist() == [-0.5, 0.5, 0.0]


def test_the_direction_interpolates_by_beta1_and_the_memory_by_beta2():
    start = {"x": np.array([1.0])}
    trial = Trial(Lion(1.0, beta1=0.5, beta2=0.75), lambda p: f.sum(p["x"] * p["x"]) * 0.5, start)
    trial.run(2)  # gradients 1 and 0: the momentum alone decides on the second step
    assert trial.values["x"] == pytest.approx([-1.0])
    assert trial.slots["x", "momentum"] == pytest.approx([0.25 * 0.75])
