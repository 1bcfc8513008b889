from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import ConstantFactor, Cosine, StepDecay, WarmUp
from sigma_testing import ScheduleSuite


class TestWarmUp(ScheduleSuite):
    def make(self):
        return WarmUp("15 iterations", 0.1, then=StepDecay("1 epoch", 0.5))


def test_warm_up_rises_linearly_and_then_stays():
    factors = WarmUp("4 iterations", 0.2).factors(np.arange(7), np.zeros(7))
    assert factors == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0], rel=1e-15)


def test_the_following_schedule_starts_after_the_warm_up():
    now = np.arange(10)
    after = WarmUp("4 epochs", 0.0, then=Cosine("6 epochs")).factors(now * 100, now)
    assert after[:4].tolist() == [0.0, 0.25, 0.5, 0.75]
    assert after[4:].tolist() == Cosine("6 epochs").factors(now * 100, now)[:6].tolist()


def test_a_following_schedule_in_the_other_unit_is_not_shifted():
    iterations, epochs = np.arange(40), np.arange(40) // 10
    factors = WarmUp("5 iterations", 0.0, then=StepDecay("1 epoch", 0.5)).factors(iterations, epochs)
    assert factors[5:].tolist() == [0.5**epoch for epoch in epochs[5:].tolist()]


def test_the_schedule_after_a_warm_up_applies_from_the_next_iteration():
    factors = WarmUp("2 iterations", 0.0, then=StepDecay("2 iterations", 0.5)).factors(np.arange(7), np.zeros(7))
    assert factors.tolist() == [0.0, 0.5, 1.0, 1.0, 0.5, 0.5, 0.25]
    factors = WarmUp("2 iterations", 0.0, then=ConstantFactor(0.3)).factors(np.arange(4), np.zeros(4))
    assert factors.tolist() == [0.0, 0.5, 0.3, 0.3]


def test_a_warm_up_must_be_followed_by_a_schedule():
    with pytest.raises(SigmaConfigError, match="WarmUp.then: must be a schedule, such as Cosine.* .got 'cosine'"):
        WarmUp("5 epochs", then="cosine")
