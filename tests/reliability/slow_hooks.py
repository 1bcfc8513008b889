"""Measure the cost per step of misbehaving hooks after three strikes.

::

    python tests/reliability/slow_hooks.py [ROUNDS] [ITERATIONS]

Trains the same network on one core without a hook and, alternating, with one that is due at every iteration and sleeps
ten times as long as a step, raises, or exits the process; and with one that does nothing, for the cost of calling a
hook at all.  Prints, for each, the median of the ratios of its step time to the one without, their quartiles, the ratio
of the fastest quarters (which are least affected by other processes), and the final state of the hook.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median, quantiles
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_training.trainer import NetworkTrainer

NETWORK = 'input(784) + dense(500, activation="relu") + output(10) + softmax_cross_entropy()'
BATCH, ROWS = 100, 2000
WARM = 10  # iterations, in which strikes happen


@define(eq=False, kw_only=True)
class Bad(Hook):
    """Misbehave at every iteration."""

    every: TimeStep = every(1, "iteration")
    does: Callable[[], Any]

    def fire(self, context: HookContext) -> None:
        """Misbehave."""
        self.does()


def fail() -> None:
    """Raise like a bug."""
    raise ZeroDivisionError


def trained(hooks: Mapping[str, Hook]) -> NetworkTrainer:
    """Return a trainer with these hooks, after the strikes."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(ROWS, 784)).astype(np.float32), draw.integers(0, 10, ROWS)
    trainer = Environment("slow").create_trainer("trainer", batch_size=BATCH, hooks=hooks)
    trainer.data, trainer.network, trainer.optimiser = (x, y), NETWORK, {"type": "momentum", "learning_rate": 0.01}
    trainer.fit(iterations=WARM)
    return trainer


def step(trainer: NetworkTrainer, iterations: int) -> float:
    """Train; return the seconds per iteration, without the end of training."""
    before = trainer.session.moment.second
    trainer.fit(iterations=iterations)
    return (trainer.session.moment.second - before) / iterations


def became(trainer: NetworkTrainer) -> str:
    """Return the state of the hook."""
    memory = trainer.session.state.memory["bad"]
    place = "muted" if memory["muted"] else "in the background" if memory.get("background") else "at work"
    return f"{place}: {memory.get('error', '')}"


def main(rounds: int, iterations: int) -> None:
    """Measure and print."""
    plain = trained({})
    seconds = median(step(plain, iterations) for _ in range(9))
    sleep: dict[str, Any] = {"does": lambda: time.sleep(10 * seconds), "budget": seconds}
    cases = {
        "does nothing": Bad(does=lambda: None),
        "sleeps, muted": Bad(**sleep),
        "sleeps, moved": Bad(**sleep, over_budget="background"),
        "raises, muted": Bad(does=fail, on_error="mute"),
        "raises, ignored": Bad(does=fail, on_error="ignore"),
        "exits, muted": Bad(does=sys.exit, on_error="mute"),
        "exits, ignored": Bad(does=sys.exit, on_error="ignore"),
    }
    trainers = {name: trained({"bad": hook}) for name, hook in cases.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ["no hook either", *cases]}
    for turn in range(rounds):
        for name, trainer in {"no hook either": plain, **trainers}.items():
            first, second = (plain, trainer) if turn % 2 else (trainer, plain)
            times = step(first, iterations), step(second, iterations)
            found[name].append(times if turn % 2 else times[::-1])
    print(f"a step takes {1000 * seconds:.2f} ms")
    for name, pairs in found.items():
        low, middle, high = quantiles([there / without for without, there in pairs], n=4)
        fast = [quantiles(times, n=4)[0] for times in zip(*pairs, strict=True)]
        said = became(trainers[name]) if name in trainers else ""
        print(f"{name:16} {middle:6.3f} ({low:.3f} to {high:.3f}) {fast[1] / fast[0]:6.3f}  {said}")


if __name__ == "__main__":
    main(*(int(given) for given in (*sys.argv[1:], *("71", "10")[len(sys.argv) - 1 :])))
