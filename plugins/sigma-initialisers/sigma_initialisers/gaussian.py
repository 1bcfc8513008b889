"""Normal distribution of a given mean and standard deviation."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.settings import finite, ge


@define(eq=False)
class Gaussian(Initialiser):
    """Draw from a normal distribution.

    Same distribution as ``torch.nn.init.normal_``.

    Args:
        deviation: Standard deviation, in units of the parameter.
        mean: Mean, in units of the parameter.
    """

    deviation: float = field(validator=[finite, ge(0)])
    mean: float = field(default=0.0, validator=finite)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normally distributed values."""
        return draws.normal(parameter.shape, self.mean, self.deviation)
