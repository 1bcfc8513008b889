from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f, minimise
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.testing import ScheduleSuite
from sigma_optimisers import ConstantFactor, Cosine, GradientDescent, StepDecay, WarmUp


class TestWarmUp(ScheduleSuite):
    def make(self):
        return WarmUp("15 iterations", 0.1, then=StepDecay("1 epoch", 0.5))


def test_warm_up_rises_linearly_and_then_stays():
    factors = WarmUp("4 iterations", 0.2).factors(np.arange(7), np.zeros(7))
    assert factors == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0], rel=1e-15)


def test_a_warm_up_of_epochs_rises_with_every_iteration():
    found = []
    minimise(
        lambda p, b: f.sum(p["w"]) + 0.0 * f.mean(b["inputs"]), {"w": np.zeros(1)}, {"inputs": np.ones((45, 1))},
        GradientDescent(1.0, schedules={"learning_rate": WarmUp("1 epoch", 0.1)}),
        lambda moment, loss, parameters: found.append(parameters["w"].item()),
        iterations=7, batch_size=10, precision="float64", backend="numpy",
    )  # fmt: skip
    rates = -np.diff([0.0, *found])
    assert rates == pytest.approx([0.1, 0.28, 0.46, 0.64, 0.82, 1.0, 1.0])  # an epoch is five iterations


@pytest.mark.parametrize("every", [1, 3, 7])
def test_bursts_of_any_length_have_the_same_rates_within_epochs(every):
    rates = WarmUp("2 epochs", 0.0, then=Cosine("1 epoch"))
    settings = {"iterations": 21, "batch_size": 10, "backend": "numpy", "iterator": "sequential"}
    data, start = {"inputs": np.arange(70.0)[:, None]}, {"w": np.zeros(1)}
    ends = [
        minimise(lambda p, b: f.mean((p["w"] - b["inputs"]) ** 2.0), start, data,
                 GradientDescent(0.1, schedules={"learning_rate": rates}), callback, every=length, **settings)["w"]
        for callback, length in ((None, 1), (lambda moment, loss: None, every))
    ]  # fmt: skip
    assert ends[0] == ends[1]


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
