from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import Adadelta
from sigma_testing import GradientOptimiserSuite, Trial


class TestAdadelta(GradientOptimiserSuite):
    def make(self):
        return Adadelta()

    def expected(self, start, gradients):
        values, squares, changes, made = [start], 0.0, 0.0, Adadelta()
        for g in gradients:
            squares = made.decay * squares + (1 - made.decay) * g**2
            change = g * np.sqrt((changes + made.epsilon) / (squares + made.epsilon))
            changes = made.decay * changes + (1 - made.decay) * change**2
            values.append(values[-1] - made.learning_rate * change)
        return np.array(values[1:])


def test_the_first_two_steps_with_a_constant_gradient_follow_the_paper():
    trial = Trial(Adadelta(1.0, 0.9, 1e-4), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(2)})
    trial.run(2)
    first = 3.0 * sqrt(1e-4) / sqrt(0.1 * 9.0 + 1e-4)
    changes = 0.1 * first**2
    second = 3.0 * sqrt(changes + 1e-4) / sqrt(0.19 * 9.0 + 1e-4)
    assert trial.values["x"] == pytest.approx(-(first + second), rel=1e-12)
    assert trial.slots["x", "square_change"] == pytest.approx(0.9 * changes + 0.1 * second**2, rel=1e-12)
