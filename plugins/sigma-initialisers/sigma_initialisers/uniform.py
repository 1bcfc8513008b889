"""Uniform distribution over an interval."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import finite


@define(eq=False)
class Uniform(Initialiser):
    """Draw from a uniform distribution over ``[low, high)``, in units of the parameter.

    Same distribution as ``torch.nn.init.uniform_``.

    Args:
        low: Lower end, in units of the parameter.
        high: Upper end, in units of the parameter.
    """

    low: float = field(validator=finite)
    high: float = field(validator=finite)

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if ``low`` is above ``high``."""
        if self.low > self.high:
            raise SigmaConfigError(f"uniform: low = {self.low} is above high = {self.high}. Swap them.")

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return uniformly distributed values."""
        return draws.uniform(parameter.shape, self.low, self.high)
