"""One number everywhere."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_initialisers import settings
from sigma_kernel.contracts import Draws, Initialiser, Parameter


@define(eq=False)
class Constant(Initialiser):
    """Fill a parameter with one number."""

    value: float = settings.number()

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return the number everywhere."""
        return np.full(parameter.shape, self.value, np.float64)
