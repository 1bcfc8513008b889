"""Fill with one value."""

import numpy as np
from attrs import frozen

from sigma_kernel import Draws, Initialiser, Parameter


@frozen
class Filled(Initialiser):
    """Fill with one value."""

    value: float = 0.5

    def values(self, address: str, parameter: Parameter, draw: Draws) -> np.ndarray:
        """Return the initial values of a parameter; ``draw`` draws random ones."""
        return np.full(parameter.shape, self.value)
