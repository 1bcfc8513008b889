"""Normal numbers of a given deviation."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_initialisers import settings
from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class Gaussian(Initialiser):
    """Draw from a normal distribution, in units of the parameter.

    Same distribution as ``torch.nn.init.normal_``.
    """

    deviation: float = settings.number(low=0.0)
    mean: float = settings.number(0.0)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normal numbers."""
        return draws.normal(parameter.shape, self.mean, self.deviation)
