"""Glorot (Xavier) uniform initialiser."""

from __future__ import annotations

from math import sqrt

import numpy as np
from attrs import define, field

from sigma_initialisers.gains import factor, gain
from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class GlorotUniform(Initialiser):
    """Draw from a uniform distribution over ``[-b, b)``, ``b = gain * sqrt(6 / (fan_in + fan_out))``.

    This keeps the variance of signals and gradients.

    Glorot and Bengio, Understanding the Difficulty of Training Deep Feedforward Neural Networks, 2010.  Same
    distribution as ``torch.nn.init.xavier_uniform_``.

    Args:
        gain: Factor: a number, or the name of the nonlinearity that follows, such as ``"tanh"``.
    """

    gain: float | str = field(default="linear", validator=gain)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return uniformly distributed values."""
        bound = factor(self.gain) * sqrt(6.0 / (parameter.fan_in + parameter.fan_out))
        return draws.uniform(parameter.shape, -bound, bound)
