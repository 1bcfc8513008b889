"""LeCun uniform initialiser, for SELU and for layers without a nonlinearity."""

from __future__ import annotations

from math import sqrt

import numpy as np
from attrs import define

from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class LecunUniform(Initialiser):
    """Draw from a uniform distribution over ``[-b, b)``, ``b = sqrt(3 / fan_in)``.

    LeCun, Bottou, Orr and Müller, Efficient BackProp, 1998.  Same distribution as ``torch.nn.init.kaiming_uniform_``
    with ``nonlinearity="linear"``.
    """

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return uniformly distributed values."""
        bound = sqrt(3.0 / parameter.fan_in)
        return draws.uniform(parameter.shape, -bound, bound)
