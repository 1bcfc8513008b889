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

    Same as ``torch.optim.lr_scheduler.ExponentialLR`` for ``"1 epoch"``.
    """

    every: str = field(validator=INTERVAL)
    factor: float = field(validator=[finite, ge(0)])

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        return np.asarray(self.factor ** intervals(self.every, iterations, epochs))
