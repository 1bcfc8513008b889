"""Identity initialiser: layers that at first leave their inputs as they are."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_initialisers.gains import factor, gain
from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import ge


@define(eq=False)
class Identity(Initialiser):
    """Fill a matrix with the identity, or kernels of a convolution with the one that keeps its channels.

    A matrix ``(inputs, outputs)`` has ones at its diagonal, as by ``torch.nn.init.eye_``. Kernels ``(filters,
    channels, *sides)`` have a one in the middle of filter i, channel i, as by ``torch.nn.init.dirac_``: such a
    convolution with padding ``"same"`` returns its input, as far as there are filters. Raises SigmaConfigError for a
    parameter with fewer than two axes, and for filters that are not divided by the groups.

    Le, Jaitly and Hinton, A Simple Way to Initialize Recurrent Networks of Rectified Linear Units, arXiv:1504.00941.

    Args:
        gain: Factor: a number, or the name of the nonlinearity that follows.
        groups: Number of groups of filters, for a convolution that has them.
    """

    gain: float | str = field(default=1.0, validator=gain)
    groups: int = field(default=1, validator=ge(1), kw_only=True)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return the identity, times the gain."""
        shape = tuple(parameter.shape)
        if len(shape) < 2:
            raise SigmaConfigError(f"{address}{shape}: an identity needs two axes or more. Match weights only.")
        if shape[0] % self.groups:
            raise SigmaConfigError(f"{address}{shape}: {self.groups} groups do not divide {shape[0]} filters.")
        middle, each = tuple(side // 2 for side in shape[2:]), shape[0] // self.groups
        values = np.zeros(shape, np.float64)
        for start in range(0, shape[0], each):
            for place in range(min(each, shape[1])):
                values[(start + place, place, *middle)] = factor(self.gain)
        return values
