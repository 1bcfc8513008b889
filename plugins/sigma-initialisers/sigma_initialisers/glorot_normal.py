"""Glorot (Xavier) normal initialiser."""

from __future__ import annotations

from math import sqrt

import numpy as np
from attrs import define, field

from sigma_initialisers.gains import factor, gain
from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class GlorotNormal(Initialiser):
    """Draw from a normal distribution of mean 0 and standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    This keeps the variance of signals and gradients.

    Glorot and Bengio, Understanding the Difficulty of Training Deep Feedforward Neural Networks, 2010.  Same
    distribution as ``torch.nn.init.xavier_normal_``.

    Args:
        gain: Factor: a number, or the name of the nonlinearity that follows, such as ``"tanh"``.
    """

    gain: float | str = field(default="linear", validator=gain)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normally distributed values."""
        deviation = factor(self.gain) * sqrt(2.0 / (parameter.fan_in + parameter.fan_out))
        return draws.normal(parameter.shape, 0.0, deviation)
