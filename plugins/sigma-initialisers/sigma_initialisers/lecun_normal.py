"""LeCun normal initialiser, for SELU and for layers without a nonlinearity."""

from __future__ import annotations

from math import sqrt

import numpy as np
from attrs import define

from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class LecunNormal(Initialiser):
    """Draw from a normal distribution of mean 0 and standard deviation ``sqrt(1 / fan_in)``.

    LeCun, Bottou, Orr and Müller, Efficient BackProp, 1998.  Same distribution as ``torch.nn.init.kaiming_normal_``
    with ``nonlinearity="linear"``.  It suits SELU: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normally distributed values."""
        return draws.normal(parameter.shape, 0.0, 1.0 / sqrt(parameter.fan_in))
