"""Intervals of schedules, such as "5 epochs": validation, and how many have passed at each iteration."""

from __future__ import annotations

import numpy as np

from sigma_kernel import TimeScale, duration
from sigma_kernel.contracts import Schedule
from sigma_kernel.settings import and_, instance_of, must

SCHEDULE = instance_of(Schedule, "a schedule, such as Cosine(...)")


def _is_of_training(text: str) -> bool:
    return duration(text)[1] in (TimeScale.EPOCH, TimeScale.ITERATION)


INTERVAL = and_(
    instance_of(str, "text with a unit, such as '5 epochs'"),
    must(_is_of_training, "a number of epochs or iterations"),
)


RUN = "run"  # in place of a time: the length of the run
TOTAL = and_(
    instance_of(str, "text with a unit, such as '5 epochs', or 'run'"),
    must(lambda text: text == RUN or _is_of_training(text), "a number of epochs or iterations, or 'run'"),
)


def intervals(text: str, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
    """Return how many intervals have passed before each iteration, fractions included."""
    return np.asarray(ticks(text, iterations, epochs) / duration(text)[0], np.float64)


def ticks(text: str, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
    """Return how many epochs, with fractions, or iterations, as the interval counts, passed before each iteration."""
    return np.asarray(epochs if duration(text)[1] is TimeScale.EPOCH else iterations, np.float64)
