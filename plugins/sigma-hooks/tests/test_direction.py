"""Whether lower or higher values are better, by the name of the value."""

from __future__ import annotations

from typing import Any

import pytest

from sigma_hooks import EarlyStop, ReduceOnPlateau, SaveCheckpoint
from sigma_hooks.direction import higher_is_better
from sigma_kernel.testing import Desk

RATE = "optimiser.learning_rate"
RISING = [0.5, 0.6, 0.7, 0.8]


@pytest.mark.parametrize(
    "address",
    [
        "validation.accuracy", "validation.digit.accuracy_top5", "training.f1_micro", "validation.precision",
        "validation.recall_weighted", "validation.r_squared", "validation.threshold_accuracy",
        "accumulated.validation.accuracy.mean",
    ],
)  # fmt: skip
def test_higher_scores_are_better(address: str) -> None:
    assert higher_is_better("automatic", address)
    assert not higher_is_better("lower", address)


@pytest.mark.parametrize(
    "address",
    [
        "validation.loss", "training.cost.accuracy", "validation.mean_absolute_error", "validation.recall_loss",
        "accumulated.validation.loss.minimum", "validation.root_mean_square_error", "recall.loss", "unheard", "running",
        "validation.bits_per_character",
    ],
)  # fmt: skip
def test_lower_losses_costs_and_errors_are_better_and_so_are_other_values(address: str) -> None:
    assert not higher_is_better("automatic", address)
    assert higher_is_better("higher", address)


def _fed(hook: Any, values: list[float]) -> Desk:
    desk = Desk({RATE: 1.0})
    for value in values:
        desk.values[hook.value] = value
        hook.fire(desk)
    return desk


def test_early_stop_waits_while_the_accuracy_rises_and_restores_the_highest() -> None:
    desk = _fed(EarlyStop("validation.accuracy", patience=2, restore=True), [*RISING, 0.7, 0.7])
    assert desk.done == ["keep"] * 4 + ["bring_back"]
    assert desk.memory["best"] == 0.8
    assert ("stop", {}) in desk.commands


def test_the_rate_stays_while_the_accuracy_rises() -> None:
    hook = ReduceOnPlateau("validation.accuracy", patience=1)
    assert not _fed(hook, RISING).commands
    assert _fed(hook, [0.5, 0.4]).commands == [("set", {"pattern": RATE, "value": 0.1})]


@pytest.mark.parametrize(("value", "prefer"), [("validation.f1", "greatest"), ("validation.loss", "least")])
def test_the_best_checkpoints_are_those_of_the_best_scores(value: str, prefer: str) -> None:
    assert SaveCheckpoint(value=value, best=1).retains["prefer"] == prefer


@pytest.mark.parametrize("kind", [EarlyStop, ReduceOnPlateau, SaveCheckpoint])
def test_a_value_of_an_unknown_name_is_logged_once_unless_the_direction_is_set(kind: Any) -> None:
    told = 'mine: lower is taken to be better. Set better = "higher" or better = "lower".'
    assert [text for text in _fed(kind(value="mine"), [3, 2, 1]).logged if "lower is" in text] == [told]
    assert not _fed(kind(value="mine", better="lower"), [3, 2, 1]).logged
    assert not _fed(kind(value="validation.loss"), [3, 2, 1]).logged
