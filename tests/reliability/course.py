"""The run that these tests interrupt, resume, steer and replay, and the comparison of two such runs.

Dropout, shuffled rows in two blocks with smaller last batches, a schedule, and hooks with memory: criteria, an early
stop that restores the best parameters, extrema, checkpoints.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define

from sigma_kernel.contracts import Optimiser
from sigma_kernel.environment import Environment
from sigma_operator_local import LocalOperator
from sigma_optimisers import Adagrad, Adam, Exponential, Momentum
from sigma_training.commands.stop import StopTraining
from sigma_training.session.loop import TrainingLoop
from sigma_training.trainer import NetworkTrainer

EPOCHS, STEPS = 9, 15  # iterations of an epoch
OPTIMISERS: dict[str, Callable[..., Optimiser]] = {
    "adam": partial(Adam, learning_rate=0.01),
    "momentum": partial(Momentum, learning_rate=0.02),
    "adagrad": partial(Adagrad, learning_rate=0.05),
}
SCHEDULES = {"learning_rate": Exponential(every="3 iterations", factor=0.99)}
NETWORK = 'input(6) + dropout(0.2) + dense(16, activation="tanh") + dropout(0.4) + output(3) + softmax_cross_entropy()'
HOOKS: dict[str, dict[str, Any]] = {
    "score": {"type": "accuracy", "on": "validation", "every": "1 epoch"},
    "often": {"type": "evaluate", "on": "validation", "every": "4 iterations", "when": "training.loss decreases"},
    "extrema": {"type": "extrema", "value": "training.loss", "every": "1 iteration"},
    "slower": {"type": "reduce_on_plateau", "value": "validation.loss", "patience": 4, "every": "7 iterations"},
    "early": {"type": "early_stop", "value": "validation.loss", "patience": 6, "restore": True},
    "finish": {"type": "stop", "when": f"epoch reaches {EPOCHS} or validation.accuracy increases for 40 epochs"},
}
SAVES = {"saves": {"type": "checkpoint", "every": "6 iterations", "last": 3}}
CLOCKWORK: dict[str, dict[str, Any]] = {  # hooks that depend on the wall clock, and differ between two runs
    "time": {"type": "running_time", "every": "3 iterations"},
    "phases": {"type": "phase_time", "every": "0.004 seconds"},
    "lucky": {"type": "reduce_on_plateau", "value": "training.loss", "patience": 9, "every": "0.003 seconds"},
    "timed": {
        "type": "reduce_on_plateau", "value": "training.loss", "patience": 5, "every": "2 iterations",
        "when": "running_time increases",
    },
}  # fmt: skip


@define(eq=False)
class Halting(LocalOperator):
    """Train, but send a stop from another thread exactly at one iteration."""

    at: int = 0

    def train(self, loop: TrainingLoop) -> None:
        """Train."""
        while loop.boundary():
            now = loop.moment.iteration
            loop.advance(min([loop.distance(), 3, *([self.at - now] if self.at > now else [])]))
            loop.settle()
            if loop.moment.iteration == self.at:
                sender = threading.Thread(target=loop.current.commands.send, args=[StopTraining()])
                sender.start()
                sender.join()


def environment(
    optimiser: str = "adam", backend: str = "numpy", folder: Path | None = None, stop_at: int | None = None,
    *, seed: int = 3, hooks: Mapping[str, Any] = HOOKS, names: tuple[str, ...] = ("trainer",), **settings: Any,
) -> Environment:  # fmt: skip
    """Return the run, ready to start; with ``stop_at``, it is stopped by command at that iteration."""
    sigma = Environment("course", seed=seed, folder=folder)
    for name in names:
        described = {
            "optimiser": OPTIMISERS[optimiser](schedules=SCHEDULES),
            "hooks": dict(hooks),
            "batch_size": 7,
            "backend": backend,
        }
        trainer = sigma.create_trainer(name, **{**described, **settings})
        trainer.data, trainer.network = splits(), NETWORK
        if stop_at is not None:
            trainer.operator = Halting(at=stop_at)
    return sigma


def splits() -> dict[str, Any]:
    """Return random data: two blocks for training, one for validation."""
    draw = np.random.default_rng(11)
    x = draw.normal(size=(160, 6)).astype(np.float32)
    y = (x[:, :3] + 0.8 * draw.normal(size=(160, 3))).argmax(1).astype(np.int32)
    return {"training": [(x[:60], y[:60]), (x[60:100], y[60:100])], "validation": (x[100:], y[100:])}


# -- comparing ---------------------------------------------------------------------------------------------------------
def tree(trainer: NetworkTrainer) -> dict[str, Any]:
    """Return the whole state tree of a finished trainer: arrays as bytes, values as JSON; without seconds."""
    state = trainer.session.ask(trainer.session.snapshot)
    clock = {scale: count for scale, count in state.values["clock"].items() if scale != "second"}
    values = {**state.values, "clock": clock}
    arrays = {name: (value.dtype.name, value.shape, value.tobytes().hex()) for name, value in state.arrays.items()}
    return {**arrays, **{name: json.dumps(value, sort_keys=True) for name, value in values.items()}}


def measured(trainer: NetworkTrainer) -> dict[str, str]:
    """Return all metrics of this process, as hexadecimal bytes of float64."""
    return {name: values.astype("<f8").tobytes().hex() for name, values in trainer.history.items()}


def continued(whole: Mapping[str, str], late: Mapping[str, str]) -> list[str]:
    """Return the metrics of a resumed run that differ from the end of the uninterrupted one."""
    return [name for name, values in late.items() if not whole.get(name, "").endswith(values)]


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names under which two trees differ."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]
