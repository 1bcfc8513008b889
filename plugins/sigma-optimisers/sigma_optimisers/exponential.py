"""Exponential decay schedule."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Schedule
from sigma_kernel.settings import finite, ge
from sigma_optimisers.intervals import INTERVAL, intervals


@define(eq=False)
class Exponential(Schedule):
    """Decay by ``factor`` over every interval, continuously: ``factor ** (t / every)``.

    Same as ``torch.optim.lr_scheduler.ExponentialLR`` for ``"1 iteration"``, and at the beginning of each epoch for
    ``"1 epoch"``: within one, the factor continues to fall.

    Args:
        every: Interval over which the setting decays by the factor, such as ``"10 epochs"`` or ``"500 iterations"``.
        factor: Factor over an interval.
    """

    every: str = field(validator=INTERVAL)
    factor: float = field(validator=[finite, ge(0)])

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        return np.asarray(self.factor ** intervals(self.every, iterations, epochs))
