"""Gains of nonlinearities and fans: shared settings of the Glorot, He and orthogonal initialisers."""

from __future__ import annotations

from math import sqrt
from typing import Any

from attrs import Attribute

from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaConfigError, suggest_name
from sigma_kernel.settings import and_, finite, ge, in_

GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": sqrt(2.0),
    "leaky_relu": sqrt(2.0 / (1.0 + 0.01**2)),
    "selu": 0.75,
}
"""Gain by nonlinearity; the values of ``torch.nn.init.calculate_gain``."""


def gain(owner: Any, attribute: Attribute[Any], value: Any) -> None:
    """Require a non-negative number or the name of a nonlinearity."""
    if not isinstance(value, str):
        and_(finite, ge(0))(owner, attribute, value)
    elif value not in GAINS:
        where, hint = f"{type(owner).__name__}.{attribute.alias}", suggest_name(value, GAINS, "Known here:")
        raise SigmaConfigError(f"{where}: must be a number or a nonlinearity (got {value!r}).{hint}")


def factor(gain: float | str) -> float:
    """Return a gain as a number."""
    return GAINS[gain] if isinstance(gain, str) else float(gain)


FAN = in_(("in", "out"))


def width(parameter: Parameter, fan: str) -> int:
    """Return the fan of a parameter: inputs per output (``"in"``), or outputs per input (``"out"``)."""
    return parameter.fan_in if fan == "in" else parameter.fan_out
