from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaError
from sigma_optimisers import Adagrad
from sigma_testing import GradientOptimiserSuite, Trial


class TestAdagrad(GradientOptimiserSuite):
    def make(self):
        return Adagrad(0.1)

    def expected(self, start, gradients):
        return start - 0.1 * np.cumsum(gradients / (np.sqrt(np.cumsum(gradients**2, axis=0)) + 1e-10), axis=0)


def test_with_a_constant_gradient_steps_shrink_with_the_root_of_their_number():
    trial = Trial(Adagrad(0.1), lambda p: f.sum(p["x"]) * -3.0, {"x": np.zeros(2)})
    trial.run(4)
    assert trial.values["x"] == pytest.approx(0.1 * sum(n**-0.5 for n in (1, 2, 3, 4)), rel=1e-9)


def test_the_accumulator_has_its_configured_start():
    trial = Trial(Adagrad(0.1, initial_accumulator=7.0), lambda p: f.sum(p["x"]) * 3.0, {"x": np.zeros(2)})
    trial.run(1)
    assert trial.slots["x", "accumulator"].tolist() == [16.0, 16.0]
    assert trial.values["x"] == pytest.approx(-0.1 * 3.0 / 4.0, rel=1e-9)


def test_a_negative_accumulator_is_refused():
    with pytest.raises(SigmaError, match="initial_accumulator"):
        Adagrad(initial_accumulator=-1.0)
