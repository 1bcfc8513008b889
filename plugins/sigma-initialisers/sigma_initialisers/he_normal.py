"""He (Kaiming) normal initialiser, for ReLU."""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np
from attrs import define, field

from sigma_initialisers.gains import FAN, factor, gain, width
from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class HeNormal(Initialiser):
    """Draw from a normal distribution of mean 0 and standard deviation ``gain / sqrt(fan_in)``.

    He et al., Delving Deep into Rectifiers, 2015.  Same distribution as ``torch.nn.init.kaiming_normal_``.

    Args:
        gain: Factor: a number, or the name of the nonlinearity that follows.
        fan: Whether to divide by ``fan_in``, which keeps the variance of signals, or by ``fan_out``, which keeps that
            of gradients.
    """

    gain: float | str = field(default="relu", validator=gain)
    fan: Literal["in", "out"] = field(default="in", validator=FAN, kw_only=True)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normally distributed values."""
        deviation = factor(self.gain) / sqrt(width(parameter, self.fan))
        return draws.normal(parameter.shape, 0.0, deviation)
