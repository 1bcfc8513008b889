"""Normal numbers of a given deviation."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.settings import finite, ge


@define(eq=False)
class Gaussian(Initialiser):
    """Draw from a normal distribution, in units of the parameter.

    Same distribution as ``torch.nn.init.normal_``.
    """

    deviation: float = field(validator=[finite, ge(0)])
    mean: float = field(default=0.0, validator=finite)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normal numbers."""
        return draws.normal(parameter.shape, self.mean, self.deviation)
