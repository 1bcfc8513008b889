from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import Adamax
from sigma_testing import GradientOptimiserSuite, Trial


class TestAdamax(GradientOptimiserSuite):
    def make(self):
        return Adamax(0.01)

    def expected(self, start, gradients):
        values = [start]
        for n in range(1, len(gradients) + 1):
            first = sum(0.1 * 0.9 ** (n - i) * gradients[i - 1] for i in range(1, n + 1)) / (1 - 0.9**n)
            largest = np.max([0.999 ** (n - i) * (np.abs(gradients[i - 1]) + 1e-8) for i in range(1, n + 1)], axis=0)
            values.append(values[-1] - 0.01 * first / largest)
        return np.array(values[1:])


def test_the_largest_gradient_is_remembered():
    trial = Trial(Adamax(0.1, beta2=0.5), lambda p: f.sum(p["x"] * p["x"]) * 0.5, {"x": np.array([8.0])})
    trial.run(1)
    assert trial.slots["x", "maximum"] == pytest.approx([8.0], rel=1e-8)
    assert trial.values["x"] == pytest.approx([7.9], rel=1e-8)
