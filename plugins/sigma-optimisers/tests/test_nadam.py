from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import NAdam
from sigma_testing import GradientOptimiserSuite, Trial


class TestNAdam(GradientOptimiserSuite):
    def make(self):
        return NAdam(0.01, momentum_decay=0.5)

    def expected(self, start, gradients):
        def share(step):
            return 0.9 * (1 - 0.5 * 0.96 ** (0.5 * step))

        values, first, second = [start], 0.0, 0.0
        for n, gradient in enumerate(gradients, 1):
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            past = np.prod([share(i) for i in range(1, n + 1)])
            ahead = (1 - share(n)) * gradient / (1 - past) + share(n + 1) * first / (1 - past * share(n + 1))
            values.append(values[-1] - 0.01 * ahead / (np.sqrt(second / (1 - 0.999**n)) + 1e-8))
        return np.array(values[1:])


def test_the_momentum_starts_at_a_half_of_beta1_and_grows():
    trial = Trial(NAdam(momentum_decay=0.0), lambda p: f.sum(p["x"]), {"x": np.zeros(2)})
    trial.run(2)
    assert trial.slots["x", "momentum_product"] == pytest.approx(0.45**2, rel=1e-14)
    assert trial.slots["x", "momentum_product"].shape == ()
