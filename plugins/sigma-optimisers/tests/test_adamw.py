from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import Adam, AdamW
from sigma_testing import GradientOptimiserSuite, Trial


def moments(gradients):
    """Return the ratio of the bias-corrected moments at each step, from sums over all gradients so far."""
    found = []
    for n in range(1, len(gradients) + 1):
        first = sum(0.1 * 0.9 ** (n - i) * gradients[i - 1] for i in range(1, n + 1)) / (1 - 0.9**n)
        second = sum(0.001 * 0.999 ** (n - i) * gradients[i - 1] ** 2 for i in range(1, n + 1)) / (1 - 0.999**n)
        found.append(first / (np.sqrt(second) + 1e-8))
    return np.array(found)


class TestAdamW(GradientOptimiserSuite):
    def make(self):
        return AdamW(0.01)

    def expected(self, start, gradients):
        values = [start]
        for change in moments(gradients):
            values.append(values[-1] * (1 - 0.01 * 0.01) - 0.01 * change)
        return np.array(values[1:])


def test_weight_decay_is_separate_from_the_gradient():
    trial = Trial(AdamW(0.1, weight_decay=0.5), lambda p: f.sum(p["x"]) * 3.0, {"x": np.array([2.0, -4.0])})
    trial.run(2)
    once = np.array([2.0, -4.0]) * 0.95 - 0.1
    assert trial.values["x"] == pytest.approx(once * 0.95 - 0.1, rel=1e-8)
    assert trial.slots["x", "first_moment"] == pytest.approx(3.0 * 0.19, rel=1e-12)  # without weight decay


def test_without_decay_it_is_adam():
    assert Trial(AdamW(0.01, weight_decay=0.0)).run(5) == Trial(Adam(0.01)).run(5)
