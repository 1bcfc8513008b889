"""Layer-sequential unit-variance initialiser."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import define, field

from sigma_initialisers.orthogonal import Orthogonal
from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.settings import finite, ge, gt, whole

MOST = 20  # divisions; each of a layer without an activation and without biases is exact


@define(eq=False, kw_only=True)
class LSUV(Initialiser):
    """Draw an orthogonal matrix, and divide it until the outputs of its layer have the standard deviation ``target``.

    The outputs are those for the first ``rows`` of the training data, activation included; layers are fitted one after
    another, from the inputs on. Raises SigmaConfigError for a parameter with fewer than two axes, and SigmaDataError if
    a layer has the same output for all rows.

    Mishkin and Matas, All You Need Is a Good Init, 2016.

    Args:
        rows: Rows of the training data to compute outputs of.
        target: Standard deviation of the outputs.
        tolerance: Largest difference of the standard deviation from the target, relative to it.
    """

    rows: int = field(default=100, validator=[whole, ge(2)])
    target: float = field(default=1.0, validator=[finite, gt(0)])
    tolerance: float = field(default=0.01, validator=[finite, gt(0)])

    @property
    def reads_rows(self) -> int:
        """Return the number of rows."""
        return self.rows

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return an orthogonal matrix in the parameter's shape."""
        return Orthogonal().values(address, parameter, draws)

    def fit(
        self, address: str, parameter: Parameter, values: np.ndarray, run: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return the values divided by the standard deviation of the outputs, in as many rounds as are needed."""
        share, before = 1.0, np.inf
        for _ in range(MOST):
            deviation = run(values).std() / self.target
            if not (np.isfinite(deviation) and deviation > 0.0):
                raise SigmaDataError(
                    f"{address}: the outputs of its layer do not differ over {self.rows} rows. Use more rows, another "
                    "initialiser of the layers before, or another one here."
                )
            if abs(deviation - 1.0) <= self.tolerance:
                break
            away = abs(np.log(deviation))
            share, before = share if away < before else share / 2, away  # its layer multiplies by it several times
            values = values / deviation**share
        return values
