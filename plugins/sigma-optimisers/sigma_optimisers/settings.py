"""Settings that stay as they are while a run goes on: numbers within a range, intervals, schedules within others."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import NOTHING, Attribute, field

from sigma_kernel.clock import TimeScale, duration
from sigma_kernel.contracts import Schedule
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network.tracing import LiveSetting


def number(default: Any = NOTHING, *, low: float | None = None, high: float | None = None) -> Any:
    """Return an attrs field for a finite number within a range; anything else is a SigmaConfigError."""
    allowed = LiveSetting(low=low, high=high)

    def check(instance: Any, attribute: Attribute[Any], value: Any) -> None:
        allowed.check(_name(instance, attribute), value, SigmaConfigError)

    return field(default=default, validator=check)


def interval(default: Any = NOTHING) -> Any:
    """Return an attrs field for ``"5 epochs"`` or ``"100 iterations"``; anything else is a SigmaConfigError.

    None stays where it is the default.
    """
    return field(default=default, validator=_check_interval)


def _check_interval(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    name = _name(instance, attribute)
    if value is None and attribute.default is None:
        return
    if not isinstance(value, str):
        raise SigmaConfigError(f"{name}: must be text with a unit, such as '5 epochs' (got {value!r}).")
    _, scale = duration(value)
    if scale not in (TimeScale.EPOCH, TimeScale.ITERATION):
        raise SigmaConfigError(f"{name}: must count epochs or iterations (got {value!r}).")


def schedules(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    """Raise SigmaConfigError where one, or one of several, is no schedule; None stays where it is the default."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(one, Schedule) and one is not attribute.default:
            raise SigmaConfigError(
                f"{_name(instance, attribute)}: must be a schedule, such as Cosine(...) (got {one!r})."
            )


def _name(instance: Any, attribute: Attribute[Any]) -> str:
    return f"{type(instance).__name__}.{attribute.name}"


def intervals(text: str, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
    """Return how many intervals were completed before each iteration, parts included."""
    return np.asarray(ticks(text, iterations, epochs) / duration(text)[0], np.float64)


def ticks(text: str, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
    """Return how many of the units of an interval, epochs or iterations, were completed before each iteration."""
    return np.asarray(epochs if duration(text)[1] is TimeScale.EPOCH else iterations, np.float64)
