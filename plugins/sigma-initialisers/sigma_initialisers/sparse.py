"""Sparse initialiser: few of the weights that lead to each output differ from 0."""

from __future__ import annotations

from math import ceil

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import finite, ge, le


@define(eq=False)
class Sparse(Initialiser):
    """Draw from a normal distribution of mean 0, and set a share of each column to 0.

    In a matrix ``(inputs, outputs)``, a column has the weights that lead to one output; ``ceil(sparsity * inputs)`` of
    them are 0, at random places. Raises SigmaConfigError for a parameter that is no matrix.

    Martens, Deep Learning via Hessian-free Optimization, 2010.  Same distribution as ``torch.nn.init.sparse_`` for an
    array of the same shape.

    Args:
        sparsity: Share of each column that is 0.
        deviation: Standard deviation of the others, in units of the parameter.
    """

    sparsity: float = field(validator=[finite, ge(0), le(1)])
    deviation: float = field(default=0.01, validator=[finite, ge(0)])

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return normally distributed values and zeros."""
        shape = tuple(parameter.shape)
        if len(shape) != 2:
            raise SigmaConfigError(f"{address}{shape}: sparse weights are a matrix. Match those of dense layers only.")
        values, order = draws.normal(shape, 0.0, self.deviation), np.argsort(draws.uniform(shape), axis=0)
        np.put_along_axis(values, order[: ceil(self.sparsity * shape[0])], 0.0, axis=0)
        return values
