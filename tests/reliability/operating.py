"""Measure the operator's overhead per iteration: with no hook due, and with one due at every iteration.

::

    python tests/reliability/operating.py [ROUNDS] [ITERATIONS] [BACKEND]

Trains a small network (4 inputs, 10 hidden units, 3 classes, batches of 10) on one core, on as many rows as iris has
and on a hundred times as many, with the operator and, alternating, by bare calls of the backend: bursts of the same
length, or one call per iteration.  Prints one JSON document: for each case the medians, in microseconds per iteration,
of the bare calls, of training, and of the differences within a round.  Times are processor time of the training thread,
which other processes affect least.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

import numpy as np
from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_step.graphs import training_step
from sigma_training.session.session import Session
from sigma_training.trainer import NetworkTrainer

NETWORK = 'input(4) + dense(10, activation="tanh") + output(3) + softmax_cross_entropy()'
BATCH, FEW, MANY = 10, 150, 15_000


@define(eq=False, kw_only=True)
class Idle(Hook):
    """Do nothing, at every iteration."""

    every: TimeStep = every(1, "iteration")

    def fire(self, context: HookContext) -> None:
        """Do nothing."""


def made(rows: int, hooks: Mapping[str, Hook], backend: str) -> NetworkTrainer:
    """Return a trainer that has started: compiled, and at the end of an epoch."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(rows, 4)).astype(np.float32), draw.integers(0, 3, rows)
    trainer = Environment("operating").create_trainer("trainer", backend=backend, batch_size=BATCH, hooks=hooks)
    trainer.data, trainer.network, trainer.optimiser = (x, y), NETWORK, {"type": "momentum", "learning_rate": 0.01}
    trainer.fit(epochs=1)
    return trainer


def bare(session: Session, iterations: int, burst: int) -> float:
    """Return the seconds per iteration of the bare program, in bursts of this length."""
    step, program = session.setup.programs.get(training_step, BATCH)
    batches, state = (
        session.loop.batches(burst),
        {name: value.copy() for name, value in session.state.arrays.items()},
    )
    steer, n = session.present.steps().steer(step), len(batches.rows)
    began = time.thread_time()
    for _ in range(iterations // n):
        state = program.run(state, batches.block, batches.rows, steer, n).state
    return (time.thread_time() - began) / (iterations // n * n)


def trained(trainer: NetworkTrainer, iterations: int) -> float:
    """Return the seconds per iteration of training."""
    began = time.thread_time()
    trainer.fit(iterations=iterations)
    return (time.thread_time() - began) / iterations


def compared(rounds: int, trainer: NetworkTrainer, iterations: int, burst: int) -> dict[str, float]:
    """Return medians in microseconds: of bare calls, of training, and of their difference."""
    ways: list[Callable[[], float]] = [
        lambda: bare(trainer.session, iterations, burst), lambda: trained(trainer, iterations)
    ]  # fmt: skip
    found: list[tuple[float, ...]] = []
    for turn in range(rounds):
        seconds = [way() for way in (ways if turn % 2 else ways[::-1])]
        found.append(tuple(seconds if turn % 2 else seconds[::-1]))
    columns = [*zip(*found, strict=True), [there - without for without, there in found]]
    return {name: 1e6 * median(column) for name, column in zip(("bare", "training", "operator"), columns, strict=True)}


def main(rounds: int = 11, iterations: int = 15_000, backend: str = "numba") -> None:
    """Measure and print."""
    idle: dict[str, Any] = {"idle": Idle()}
    found = {
        "few rows, no hook due": compared(rounds, made(FEW, {}, backend), iterations, MANY),
        "many rows, no hook due": compared(rounds, made(MANY, {}, backend), iterations, MANY),
        "a hook due at every iteration": compared(rounds, made(MANY, idle, backend), iterations // 5, 1),
    }
    print(json.dumps({"backend": backend, "rounds": rounds, "microseconds": found}, indent=1))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*map(int, given[:2]), *given[2:])
