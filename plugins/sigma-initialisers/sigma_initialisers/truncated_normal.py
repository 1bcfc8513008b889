"""Normal distribution truncated at two standard deviations."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.settings import finite, ge


@define(eq=False)
class TruncatedNormal(Initialiser):
    """Draw from a normal distribution truncated two standard deviations from its mean, in units of the parameter.

    Same distribution as ``torch.nn.init.trunc_normal_`` with bounds at two standard deviations.

    Args:
        deviation: Standard deviation before truncation, in units of the parameter; after it, it is 0.8796 times that.
        mean: Mean, in units of the parameter.
    """

    deviation: float = field(validator=[finite, ge(0)])
    mean: float = field(default=0.0, validator=finite)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normally distributed values in ``[mean - 2 * deviation, mean + 2 * deviation]``."""
        return draws.truncated_normal(parameter.shape, self.mean, self.deviation, 2.0)
