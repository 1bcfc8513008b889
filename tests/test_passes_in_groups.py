"""Evaluation and losses during training by a group: workers measure parts of a split, to the bits of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import sigma_ml as sm
from sigma_hooks import AccuracyMetric
from sigma_kernel import Environment, HookContext, SigmaTrainingError, every
from sigma_kernel.contracts import Metric
from sigma_operator_local import LocalOperator
from sigma_step.steps import Steps
from sigma_testing import Do
from sigma_testing.transports.threads import ThreadOperator
from sigma_training.evaluator import Evaluator
from sigma_training.passes import SplitPass, SplitPiece
from sigma_training.workers import replica

NORMALISED = """format = 1
[run]
seed = 4
[data]
dataset = "digits"
batch_size = {batch}
[network]
architecture = 'input(8, 8) + flatten() + dense(9) + batch_norm() + output(10) + softmax_cross_entropy()'
[trainer]
epochs = 2
optimiser = {{ type = "adam", learning_rate = 0.01 }}
"""
CARRIED = """format = 1
[data]
dataset = "adding"
rows = 90
steps = 6
iterator = "sequential"
batch_size = 20
last_batch = "drop"
[network]
architecture = "input(none, 2) + lstm(5, carried=20) + output(1) + squared_difference()"
[trainer]
epochs = 2
optimiser = { type = "adam", learning_rate = 0.01 }
"""
BINARY = """format = 1
[data]
dataset = "wdbc"
batch_size = 30
[network]
architecture = "input(30) + dense(4) + output(1) + binary_cross_entropy()"
[trainer]
epochs = 2
optimiser = { type = "adam", learning_rate = 0.01 }
"""
CLASSES = {"right": "accuracy", "second": {"type": "accuracy", "top": 2}, "matrix": "confusion_matrix"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "state of layers": (NORMALISED.format(batch=70), CLASSES),
    "fewer batches than shards": (NORMALISED.format(batch=900), CLASSES),
    "state of rows": (CARRIED, {"error": "mean_absolute_error"}),
    "rows that are kept": (BINARY, {"auc": "auc", "right": "threshold_accuracy"}),
}


def measure_in_hooks(
    sigma: Environment, metrics: Mapping[str, Any], losses: bool = True, **settings: Any
) -> list[list[Any]]:
    """Train, and return what a hook measures after each epoch, with the bits of all numbers."""
    trainer, measured = sigma.trainer("trainer"), list[list[Any]]()

    def measure(context: HookContext) -> None:
        splits = ["training", "validation"]
        values = [repr(context.evaluate(on, metrics)) for on in splits]
        rows = [context.losses(on) for on in splits] if losses else []
        measured.append([*values, *(getattr(x, n).tobytes() for x in rows for n in ("rows", "losses", "predicted"))])

    trainer.hooks = {**trainer.hooks, "measure": Do(does=measure, every=every(1, "epoch"), **settings)}
    sigma.run(progress=False)
    return measured


def train(text: str, operator: Any, metrics: Mapping[str, Any], **settings: Any) -> list[list[Any]]:
    sigma = sm.from_file(text)
    sigma.trainer("trainer").operator = operator
    return measure_in_hooks(sigma, metrics, **settings)


@contextmanager
def watching(patch: pytest.MonkeyPatch, each: Callable[..., object] = lambda part: None) -> Iterator[list[Any]]:
    """Note who measures which part of a pass, by the name of the thread; ``each`` is called before a part."""
    parts, original = list[Any](), Evaluator.measure

    def measure(self: Evaluator, steps: Steps, what: SplitPass, part: int = 0, parts_: int = 1) -> Iterator[SplitPiece]:
        each(part)
        if what.metrics != {}:  # of the hook that evaluates by default
            parts.append((threading.current_thread().name, part, parts_))
        return original(self, steps, what, part, parts_)

    with patch.context() as inner:
        inner.setattr(Evaluator, "measure", measure)
        yield parts


@pytest.mark.long_cases("fewer batches than shards", "rows that are kept", "state of layers")
@pytest.mark.parametrize("case", CASES)
def test_workers_measure_the_bits_of_one_process(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, metrics = CASES[case]
    expected = train(text, LocalOperator(shards=4), metrics)
    for workers in (2, 3):
        with watching(monkeypatch) as parts:
            assert train(text, ThreadOperator(workers=workers, shards=4), metrics) == expected
        in_group = [part for part in parts if part[2] == 4]
        assert len(in_group) >= 4 * 4 * len(expected)
        assert {(thread, count) for thread, _, count in in_group} == {("sigma-replica", 4)}


def test_blocks_are_read_by_the_workers_that_measure_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(operator: Any) -> list[list[Any]]:
        draw = np.random.default_rng(0)
        rows, targets = draw.normal(size=(103, 3)).astype("float32"), draw.normal(size=(103, 1)).astype("float32")
        sigma = Environment("mine", seed=3, most_data=200)  # some 20 blocks
        data = {"training": (rows[:70], targets[:70]), "validation": (rows[70:], targets[70:])}
        given = {"data": data, "network": "input(3) + dense(4) + output(1) + squared_difference()", "epochs": 2}
        sigma.create_trainer(**given, optimiser="adam", batch_size=6, operator=operator)
        return measure_in_hooks(sigma, {"error": "mean_absolute_error"})

    expected = measure(LocalOperator(shards=3))
    with watching(monkeypatch) as parts:
        assert measure(ThreadOperator(workers=3, shards=3)) == expected
    assert {part[2] for part in parts} == {3}


def test_a_death_in_the_midst_of_a_pass_changes_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    text, metrics = CASES["state of layers"]
    operator, killed = ThreadOperator(workers=3, shards=4), list[int]()

    def kill(part: int) -> None:
        if part == 2 and len(killed) < 2:
            alive = [number for number, channel in operator.transports[0].channels.items() if not channel.dead]
            killed.append(alive[len(killed) % len(alive)])
            operator.transports[0].kill(killed[-1])

    expected = train(text, LocalOperator(shards=4), metrics)
    with watching(monkeypatch, kill):
        assert train(text, operator, metrics) == expected
    assert len(killed) == 2


@frozen
class FailingMetric(Metric):
    """A metric that cannot be compiled."""

    def totals(self, prediction: Any, targets: Any) -> Any:
        raise ValueError("wrong on purpose")


def test_an_error_of_a_metric_is_that_of_the_hook_and_not_the_end_of_the_run() -> None:
    errors = list[str]()

    def measure(context: HookContext) -> None:
        with pytest.raises(Exception, match="wrong on purpose") as caught:
            context.evaluate("validation", {"mine": FailingMetric()})
        errors.append(str(caught.value))

    def run(operator: Any) -> str | None:
        sigma = sm.from_file(NORMALISED.format(batch=70))
        trainer = sigma.trainer("trainer")
        trainer.operator, trainer.hooks = operator, {"measure": Do(does=measure)}
        return sigma.run(progress=False).parameters_sha256

    assert run(ThreadOperator(workers=2, shards=2)) == run(LocalOperator(shards=2))
    assert errors == [errors[0]] * 4


def test_a_worker_that_fails_in_a_pass_ends_the_run_whatever_the_hook_does_about_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*given: Any) -> None:
        raise KeyboardInterrupt("wrong on purpose")

    sigma = sm.from_file(NORMALISED.format(batch=70))
    trainer, evaluate = sigma.trainer("trainer"), lambda context: context.evaluate("validation", {})
    trainer.operator = ThreadOperator(workers=2, shards=2)
    trainer.hooks = {"measure": Do(does=evaluate, on_error="ignore")}
    monkeypatch.setattr(replica.Replica, "_measure", fail)
    with pytest.raises(SigmaTrainingError, match=r"(?s)worker [01]: Traceback .*wrong on purpose"):
        sigma.run(progress=False)


def test_what_workers_cannot_measure_is_measured_by_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(AccuracyMetric):
        """A metric that no module offers."""

    text = NORMALISED.format(batch=70)
    expected = train(text, LocalOperator(shards=2), {"mine": Own()}, losses=False)
    with watching(monkeypatch) as parts:
        assert train(text, ThreadOperator(workers=2, shards=2), {"mine": Own()}, losses=False) == expected
        assert {part[1:] for part in parts} == {(0, 1)}
        parts.clear()
        train(text, ThreadOperator(workers=1, shards=2), {"right": "accuracy"}, losses=False)
        assert {part[1:] for part in parts} == {(0, 1)}


def test_a_state_that_a_hook_has_changed_is_measured_by_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list[Any]()

    def measure(context: HookContext) -> None:
        context.command("set", pattern="optimiser.learning_rate", value=0.02 + 0.001 * len(values))
        values.append(context.evaluate("validation", {"right": "accuracy"})["loss"])

    def run(operator: Any) -> list[Any]:
        values.clear()
        sigma = sm.from_file(NORMALISED.format(batch=70))
        trainer = sigma.trainer("trainer")
        trainer.operator, trainer.hooks = operator, {"measure": Do(does=measure, every=every(5, "iteration"))}
        trainer.fit(iterations=7, progress=False)
        return [*values]

    expected = run(LocalOperator(shards=2))
    with watching(monkeypatch) as parts:
        assert run(ThreadOperator(workers=2, shards=2)) == expected
    assert {part[1:] for part in parts} == {(0, 1)}
