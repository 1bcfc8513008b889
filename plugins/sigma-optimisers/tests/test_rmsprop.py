from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import RMSprop
from sigma_testing import GradientOptimiserSuite, Trial


class TestRMSprop(GradientOptimiserSuite):
    def make(self):
        return RMSprop()

    def expected(self, start, gradients):
        mean = [0.01 * sum(0.99 ** (n - i) * gradients[i] ** 2 for i in range(n + 1)) for n in range(len(gradients))]
        return start - 0.01 * np.cumsum(gradients / (np.sqrt(mean) + 1e-8), axis=0)


def test_with_a_constant_gradient_the_mean_square_converges():
    trial = Trial(RMSprop(0.1, 0.5, 1e-4), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(2)})
    trial.run(3)
    roots = [3.0 * (1 - 0.5**n) ** 0.5 for n in (1, 2, 3)]
    assert trial.values["x"] == pytest.approx(-sum(0.1 * 3.0 / (root + 1e-4) for root in roots), rel=1e-12)
