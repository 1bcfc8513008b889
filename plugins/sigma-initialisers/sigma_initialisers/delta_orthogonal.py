"""Delta-orthogonal initialiser, for deep convolutional networks."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_initialisers.gains import factor, gain
from sigma_initialisers.orthogonal import orthonormal
from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaConfigError


@define(eq=False)
class DeltaOrthogonal(Initialiser):
    """Draw kernels that are 0 but in the middle, where filters by channels are a matrix with orthonormal columns.

    Such a convolution keeps the norm of its input, up to padding, so that very deep networks can be trained. Raises
    SigmaConfigError for a parameter that is no kernel ``(filters, channels, *sides)``, and for fewer filters than
    channels.

    Xiao, Bahri, Sohl-Dickstein, Schoenholz and Pennington, Dynamical Isometry and a Mean Field Theory of CNNs,
    arXiv:1806.05393; algorithm 1.

    Args:
        gain: Factor: a number, or the name of the nonlinearity that follows.
    """

    gain: float | str = field(default=1.0, validator=gain)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return zeros, and an orthogonal matrix in the middle."""
        shape = tuple(parameter.shape)
        if len(shape) < 3:
            raise SigmaConfigError(
                f"{address}{shape}: kernels of a convolution have three axes or more. Match those, or use orthogonal."
            )
        filters, channels, *sides = shape
        if filters < channels:
            raise SigmaConfigError(
                f"{address}{shape}: {filters} filters cannot keep {channels} channels apart. "
                "Use as many filters at least, or orthogonal."
            )
        values = np.zeros(shape, np.float64)
        middle = int(np.ravel_multi_index([side // 2 for side in sides], sides))
        matrix = factor(self.gain) * orthonormal(draws.normal((filters, channels)))
        values.reshape(filters, channels, -1)[:, :, middle] = matrix
        return values
