"""ConstantFactor schedule."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Schedule
from sigma_kernel.settings import finite, ge


@define(eq=False)
class ConstantFactor(Schedule):
    """Multiply a setting by a constant factor.

    Args:
        factor: Factor on the setting.
    """

    factor: float = field(default=1.0, validator=[finite, ge(0)])

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return the factor for each iteration."""
        return np.full(iterations.shape, self.factor, np.float64)
