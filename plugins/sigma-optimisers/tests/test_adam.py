from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import Adam
from sigma_testing import GradientOptimiserSuite, Trial


def moments(gradients):
    """Return the ratio of the bias-corrected moments at each step, from sums over all gradients so far."""
    found = []
    for n in range(1, len(gradients) + 1):
        first = sum(0.1 * 0.9 ** (n - i) * gradients[i - 1] for i in range(1, n + 1)) / (1 - 0.9**n)
        second = sum(0.001 * 0.999 ** (n - i) * gradients[i - 1] ** 2 for i in range(1, n + 1)) / (1 - 0.999**n)
        found.append(first / (np.sqrt(second) + 1e-8))
    return np.array(found)


class TestAdam(GradientOptimiserSuite):
    def make(self):
        return Adam(0.01)

    def expected(self, start, gradients):
        return start - 0.01 * np.cumsum(moments(gradients), axis=0)


@pytest.mark.parametrize("slope", [1e-3, 3.0, 1e6])
def test_with_a_constant_gradient_every_step_has_the_length_of_the_rate(slope):
    """With bias correction, the ratio of the moments of a constant gradient is 1 from the first step on."""
    trial = Trial(Adam(0.01), lambda p: f.sum(p["x"]) * slope, {"x": np.zeros(2)})
    trial.run(7)
    assert trial.values["x"] == pytest.approx(-7 * 0.01 * slope / (slope + 1e-8), rel=1e-12)


def test_in_float32_the_first_step_has_the_length_of_the_rate():
    trial = Trial(Adam(0.01), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(2)}, dtype="float32")
    trial.run(1)
    assert trial.values["x"] == pytest.approx(-0.01, rel=1e-6)


def largest(gradients):
    """Return the ratio of the first moment to the largest second moment so far, with both corrections."""
    first, second, most, found = 0.0, 0.0, 0.0, []
    for n, gradient in enumerate(gradients, 1):
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        most = np.maximum(most, second)
        found.append(first / (1 - 0.9**n) / (np.sqrt(most / (1 - 0.999**n)) + 1e-8))
    return np.array(found)


class TestAdamWithAMSGrad(GradientOptimiserSuite):
    def make(self):
        return Adam(0.01, amsgrad=True)

    def expected(self, start, gradients):
        return start - 0.01 * np.cumsum(largest(gradients), axis=0)


def test_amsgrad_keeps_dividing_by_the_largest_second_moment():
    start = {"x": np.array([4.0])}
    trial = Trial(Adam(4.0, 0.0, 0.0, amsgrad=True), lambda p: f.sum(p["x"] * p["x"]) * 0.5, start)
    trial.run(3)
    assert trial.slots["x", "largest_moment"].tolist() == [16.0]
    assert trial.slots["x", "second_moment"] == pytest.approx([0.0], abs=1e-12)


def test_amsgrad_is_true_or_false():
    with pytest.raises(SigmaConfigError, match=r"amsgrad: must be true or false \(got 1\)"):
        Adam(amsgrad=1)
