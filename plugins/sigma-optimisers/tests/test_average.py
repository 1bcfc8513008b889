from __future__ import annotations

import numpy as np
import pytest

from sigma_optimisers import Average, Clip, GradientDescent
from sigma_testing import START, ModifierSuite, Trial


class TestAverage(ModifierSuite):
    modifies = False

    def make(self):
        return Average(0.5)


def followed(decay, modifiers, steps=6):
    """Return the values of one parameter after each step, and the averages."""
    trial = Trial(GradientDescent(0.5, modifiers={**modifiers, "slow": Average(decay)}))
    values, averages = [], []
    for _ in range(steps):
        trial.run(1)
        values.append(trial.values["1-dense.weights"])
        averages.append(trial.slots["1-dense.weights", "modifiers.slow.weights"])
    return values, averages


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 1.0])
def test_the_average_begins_with_the_first_update_and_decays(decay):
    values, averages = followed(decay, {})
    for n in range(1, len(values) + 1):
        weights = [decay ** (n - 1)] + [(1 - decay) * decay ** (n - i) for i in range(2, n + 1)]
        wanted = sum(weight * value for weight, value in zip(weights, values, strict=False))
        np.testing.assert_allclose(averages[n - 1], wanted, rtol=1e-12)


def test_training_is_the_same_with_an_average_and_without():
    assert Trial(GradientDescent(0.5, modifiers={"slow": Average(0.9)})).run(6) == Trial(GradientDescent(0.5)).run(6)


def test_what_is_averaged_has_passed_the_modifiers_before_it():
    values, averages = followed(0.9, {"low": Clip(-0.1, 0.1)})
    assert np.abs(values[-1]).max() == np.abs(averages[0]).max() == 0.1
    assert np.abs(START["1-dense.weights"]).max() > 0.1
