"""Read a trainer's progress from published values, and format it as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from sigma_kernel.contracts import View
from sigma_monitor_console.sparks import Trend


@frozen
class Reading:
    """The progress of a trainer at one time; ``goal`` is the last iteration, if known."""

    name: str
    iteration: int
    epoch: int
    goal: int | None
    epochs: float | None  # in total, if known
    values: Mapping[str, float]
    curves: Mapping[str, Trend] = field(factory=dict)

    def progress(self) -> str:
        """Return the epoch, and the number of epochs if known."""
        total = "" if self.epochs is None or math.isinf(self.epochs) else f"/{int(self.epochs)}"
        return f"epoch {self.epoch}{total}"

    def numbers(self) -> str:
        """Return the measured values on one line."""
        return "  ".join(f"{name} {format_number(value)}" for name, value in self.values.items())


def read(view: View) -> list[Reading]:
    """Return a reading of every trainer."""
    return [_reading(view, address.partition(".")[0]) for address, _ in view.find("*<trainer>.iteration")]


def _reading(view: View, name: str) -> Reading:
    means: dict[str, Any] = {}
    for head in ("training", "training.epoch", "validation", "test"):  # means over the epoch replace the last iteration
        there = view.find(f"{name}.{head}.*")
        means |= {f"{head.partition('.')[0]}.{a.removeprefix(f'{name}.{head}.')}": value for a, value in there}
    values = {key.replace("training.loss", "loss"): value for key, value in means.items() if isinstance(value, float)}
    iteration, epoch, goal, epochs = (view.get(f"{name}.{key}") for key in ("iteration", "epoch", "goal", "epochs"))
    return Reading(name, iteration, epoch, goal, epochs, values)


def format_number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def duration(seconds: float) -> str:
    """Return seconds as text: ``45 s``, ``3:20 min``, ``2:05 h``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02} h"


@frozen
class Speed:
    """Iterations a second, measured between two readings."""

    iteration: int
    seconds: float
    rate: float | None = None

    def advance(self, iteration: int, seconds: float) -> Speed:
        """Return the speed after a later reading, an exponential moving average."""
        passed = seconds - self.seconds
        if passed <= 0 or iteration < self.iteration:
            return Speed(iteration, seconds, self.rate)
        now = (iteration - self.iteration) / passed
        return Speed(iteration, seconds, now if self.rate is None else 0.7 * self.rate + 0.3 * now)

    def words(self, goal: int | None) -> tuple[str, ...]:
        """Return the speed as text, and the time left if the last iteration is known."""
        if not self.rate:
            return ()
        speed = f"{self.rate:,.0f} it/s" if self.rate >= 10 else f"{self.rate:.2g} it/s"
        if not goal or goal <= self.iteration:
            return (speed,)
        return speed, f"{duration((goal - self.iteration) / self.rate)} left"
