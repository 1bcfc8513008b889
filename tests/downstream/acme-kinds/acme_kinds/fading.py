"""Divide a setting by 1 plus the number of epochs."""

import numpy as np
from attrs import frozen

from sigma_kernel import Schedule


@frozen
class Fading(Schedule):
    """Divide a setting by 1 plus the number of epochs."""

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        return np.asarray(1.0 / (1.0 + epochs))
