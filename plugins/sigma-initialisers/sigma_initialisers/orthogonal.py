"""Orthogonal initialiser."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_initialisers.gains import factor, gain
from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import limit_blas


@define(eq=False)
class Orthogonal(Initialiser):
    """Draw a random matrix with orthonormal rows or columns (whichever are fewer), uniformly, times ``gain``.

    The first axis is the rows; all others together are the columns. Raises SigmaConfigError for a parameter with fewer
    than two axes.

    Saxe, McClelland and Ganguli, Exact Solutions to the Nonlinear Dynamics of Learning in Deep Linear Neural
    Networks, 2014.  Same method as ``torch.nn.init.orthogonal_``.

    Args:
        gain: Factor: a number, or the name of the nonlinearity that follows.
    """

    gain: float | str = field(default=1.0, validator=gain)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return an orthogonal matrix in the parameter's shape."""
        shape = tuple(parameter.shape)
        if len(shape) < 2:
            raise SigmaConfigError(
                f"{address}{shape}: an orthogonal matrix needs two axes or more. Match weights only ('**.weights')."
            )
        rows, columns = shape[0], int(np.prod(shape[1:]))
        tall = orthonormal(draws.normal((max(rows, columns), min(rows, columns))))
        return factor(self.gain) * (tall if rows >= columns else tall.T).reshape(shape)


def orthonormal(tall: np.ndarray) -> np.ndarray:
    """Return orthonormal columns; the signs of R make them unique, and uniform if ``tall`` is normal."""
    with limit_blas():
        q, r = np.linalg.qr(tall)
    return q * np.where(np.diagonal(r) < 0.0, -1.0, 1.0)
