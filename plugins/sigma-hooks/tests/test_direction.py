"""Whether lower or higher values are better, by the metric that is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
from attrs import evolve

from sigma_hooks import (
    Accumulate,
    Accuracy,
    AccuracyMetric,
    ConfusionMatrix,
    EarlyStop,
    Evaluate,
    ReduceOnPlateau,
    SaveCheckpoint,
    Stop,
)  # fmt: skip
from sigma_kernel import Node, functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import Desk, Sweep, small_classifier
from sigma_training import NetworkTrainer

RATE = "optimiser.learning_rate"
RISING = [0.5, 0.6, 0.7, 0.8]


class Undeclared(Metric):
    """A metric that does not say which values are better."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(f.square(prediction))


class Odd(Undeclared):
    """A metric with the name of a score of which lower values are better."""

    better = "lower"


METRICS = {"accuracy": Odd(), "error_rate": AccuracyMetric(), "silent": Undeclared()}


@pytest.fixture(scope="module")
def trainer() -> Iterator[NetworkTrainer]:
    with small_classifier(Sweep(1)) as environment:
        trainer = environment.trainer("trainer")
        trainer.metrics = {"own": AccuracyMetric()}
        trainer.hooks = {
            "accuracy": Accuracy(), "auc": ConfusionMatrix(), "other": Evaluate(on="training", metrics=METRICS),
            "mean": Accumulate("validation.accuracy"),
        }  # fmt: skip
        trainer.fit()
        yield trainer


@pytest.mark.parametrize(
    ("address", "direction"),
    [
        ("validation.accuracy", "higher"), ("training.accuracy", "lower"), ("training.error_rate", "higher"),
        ("training.silent", "undeclared"), ("validation.confusion_matrix", "neither"), ("training.own", "higher"),
        ("accumulated.validation.accuracy.mean", "higher"), ("workers.0.validation.accuracy", "higher"),
        ("validation.loss", "lower"), ("training.cost.accuracy", "lower"), ("unheard", ""),
        ("accumulated.validation.loss.minimum", "lower"), ("elsewhere.precision", ""),
    ],
)  # fmt: skip
def test_the_metric_at_an_address_says_which_values_are_better(
    trainer: NetworkTrainer, address: str, direction: str
) -> None:
    assert trainer.session.setup.direction(address) == direction


def test_the_metric_of_another_trainer_says_which_values_are_better() -> None:
    with small_classifier(Sweep(1)) as sigma, small_classifier(Sweep(1)) as elsewhere:
        other = elsewhere.trainer("trainer")
        other.hooks = {"score": Accuracy(on="training")}
        setup = evolve(sigma.trainer("trainer").session.setup, others={"other": other})
        assert setup.direction("other.training.accuracy") == ""  # nothing is known of it before it is prepared
        other.prepare()
        assert setup.direction("other.training.accuracy") == "higher"
        assert setup.direction("other.training.loss") == "lower"


@pytest.mark.parametrize("hook", [EarlyStop, ReduceOnPlateau, partial(SaveCheckpoint, best=1)])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("training.silent", "training.silent: its metric does not say whether lower or higher ones are better. Set"),
        ("validation.confusion_matrix", "validation.confusion_matrix: its metric says that neither are better. Set"),
    ],
)
def test_a_metric_that_does_not_say_is_refused_unless_the_setting_does(hook: Any, value: str, message: str) -> None:
    hooks = {"matrix": ConfusionMatrix(), "other": Evaluate(on="training", metrics=METRICS)}
    with small_classifier(Sweep(1)) as environment:
        trainer = environment.trainer("trainer")
        trainer.hooks = {**hooks, "waiting": hook(value=value)}
        with pytest.raises(SigmaConfigError, match=f"^trainer.hooks.waiting: {message}"):
            trainer.fit()
        trainer.hooks = {**hooks, "waiting": hook(value=value, better="lower")}
        trainer.prepare()


def test_a_criterion_that_takes_a_score_to_fall_is_refused() -> None:
    for when, refused in (
        ("validation.accuracy improves by 0.1 for 2 epochs", True),
        ("training.accuracy improves", False),
    ):
        with small_classifier(Sweep(1)) as environment:
            trainer = environment.trainer("trainer")
            other = Evaluate(on="training", metrics=METRICS)
            trainer.hooks = {"accuracy": Accuracy(), "other": other, "stop": Stop(when=f"not ({when})")}
            with pytest.raises(SigmaConfigError) if refused else nullcontext() as error:
                trainer.prepare()
            assert not refused or str(error.value) == (
                "trainer.hooks.stop.when: validation.accuracy improves: means that it falls. Write 'improves upwards'."
            )


def _fed(hook: Any, values: list[float]) -> Desk:
    desk = Desk({RATE: 1.0}, directions={"validation.accuracy": "higher"})
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


@pytest.mark.parametrize("kind", [EarlyStop, ReduceOnPlateau, SaveCheckpoint])
def test_a_value_of_an_unknown_name_is_logged_once_unless_the_direction_is_set(kind: Any) -> None:
    told = 'mine: lower is assumed to be better. Set better = "higher" or better = "lower".'
    assert [text for text in _fed(kind(value="mine"), [3, 2, 1]).logged if "lower is" in text] == [told]
    assert not _fed(kind(value="mine", better="lower"), [3, 2, 1]).logged
    assert not _fed(kind(value="validation.loss"), [3, 2, 1]).logged
