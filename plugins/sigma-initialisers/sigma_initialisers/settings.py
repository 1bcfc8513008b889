"""Settings of initialisers: numbers within a range, and gains."""

from __future__ import annotations

from math import sqrt
from typing import Any

from attrs import NOTHING, Attribute, field

from sigma_kernel.errors import SigmaConfigError, near
from sigma_kernel.network.tracing import LiveSetting, Parameter

GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": sqrt(2.0),
    "leaky_relu": sqrt(2.0 / (1.0 + 0.01**2)),
    "selu": 0.75,
}
"""What makes up for a nonlinearity's shrinking of signals; the values of ``torch.nn.init.calculate_gain``."""


def number(default: Any = NOTHING, *, low: float | None = None) -> Any:
    """Return an attrs field for a finite number of at least ``low``; anything else is a SigmaConfigError."""
    allowed = LiveSetting(low=low)

    def check(instance: Any, attribute: Attribute[Any], value: Any) -> None:
        allowed.check(_name(instance, attribute), value, SigmaConfigError)

    return field(default=default, validator=check)


def gain(default: float | str) -> Any:
    """Return an attrs field for a factor: a number of at least 0, or the name of a nonlinearity."""
    return field(default=default, validator=_check_gain)


def _check_gain(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str):
        LiveSetting(low=0.0).check(_name(instance, attribute), value, SigmaConfigError)
    elif value not in GAINS:
        hint = near(value, GAINS) or f" Known here: {', '.join(GAINS)}."
        raise SigmaConfigError(
            f"{_name(instance, attribute)}: must be a number or a nonlinearity (got {value!r}).{hint}"
        )


def factor(gain: float | str) -> float:
    """Return a gain as a number."""
    return GAINS[gain] if isinstance(gain, str) else float(gain)


def fan() -> Any:
    """Return an attrs field for ``"in"`` or ``"out"``."""
    return field(default="in", validator=_check_fan, kw_only=True)


def _check_fan(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if value not in ("in", "out"):
        raise SigmaConfigError(f"{_name(instance, attribute)}: must be 'in' or 'out' (got {value!r}).")


def _name(instance: Any, attribute: Attribute[Any]) -> str:
    return f"{type(instance).__name__}.{attribute.name}"


def width(parameter: Parameter, fan: str) -> int:
    """Return how many values each output sums (fan in), or each input reaches (fan out)."""
    return parameter.fan_in if fan == "in" else parameter.fan_out
