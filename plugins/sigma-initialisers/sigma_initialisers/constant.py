"""Constant initialiser."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.settings import finite


@define(eq=False)
class Constant(Initialiser):
    """Fill a parameter with a constant value.

    Args:
        value: Value of every element, in units of the parameter.
    """

    value: float = field(validator=finite)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return an array of the value."""
        return np.full(parameter.shape, self.value, np.float64)
