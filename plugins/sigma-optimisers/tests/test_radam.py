from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import RAdam
from sigma_testing import GradientOptimiserSuite, Trial


def rectified(gradients, beta2=0.999):
    """Return the change per learning rate at each step, and the length of the average."""
    first, second, bound, found, lengths = 0.0, 0.0, 2 / (1 - beta2) - 1, [], []
    for n, gradient in enumerate(gradients, 1):
        first, second = 0.9 * first + 0.1 * gradient, beta2 * second + (1 - beta2) * gradient**2
        mean, length = first / (1 - 0.9**n), bound - 2 * n * beta2**n / (1 - beta2**n)
        if length > 5:
            factor = (length - 4) * (length - 2) * bound / ((bound - 4) * (bound - 2) * length)
            mean = mean * np.sqrt(factor) * np.sqrt(1 - beta2**n) / (np.sqrt(second) + 1e-8)
        found.append(mean)
        lengths.append(length)
    return np.array(found), lengths


class TestRAdam(GradientOptimiserSuite):
    steps = 8  # five without the second moment

    def make(self):
        return RAdam(0.01)

    def expected(self, start, gradients):
        return start - 0.01 * np.cumsum(rectified(gradients)[0], axis=0)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_it_begins_to_divide_at_the_sixth_step(precision):
    found, lengths = rectified(np.full((8, 1), 3.0))
    assert [length > 5 for length in lengths] == [False] * 5 + [True] * 3
    trial = Trial(RAdam(0.01), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(1)}, dtype=precision)
    trial.run(8)
    assert trial.values["x"] == pytest.approx(-0.01 * found.sum(0), rel=1e-12 if precision == "float64" else 1e-3)


@pytest.mark.parametrize("beta2", [0.0, 0.3, 0.6])
def test_a_short_average_is_never_sure(beta2):
    trial = Trial(RAdam(0.01, beta2=beta2), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(1)})
    trial.run(20)
    assert trial.values["x"] == pytest.approx(-0.01 * 3.0 * 20, rel=1e-12)
