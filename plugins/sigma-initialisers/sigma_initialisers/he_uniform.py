"""He (Kaiming) uniform initialiser, for ReLU."""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np
from attrs import define, field

from sigma_initialisers.gains import FAN, factor, gain, width
from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class HeUniform(Initialiser):
    """Draw from a uniform distribution over ``[-b, b)``, ``b = gain * sqrt(3 / fan_in)``.

    He et al., Delving Deep into Rectifiers, 2015.  Same distribution as ``torch.nn.init.kaiming_uniform_``.

    Args:
        gain: Factor: a number, or the name of the nonlinearity that follows.
        fan: Whether to divide by ``fan_in``, which keeps the variance of signals, or by ``fan_out``, which keeps that
            of gradients.
    """

    gain: float | str = field(default="relu", validator=gain)
    fan: Literal["in", "out"] = field(default="in", validator=FAN, kw_only=True)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return uniformly distributed values."""
        bound = factor(self.gain) * sqrt(3.0 / width(parameter, self.fan))
        return draws.uniform(parameter.shape, -bound, bound)
