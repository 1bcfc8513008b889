"""StepDecay decay schedule."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Schedule
from sigma_kernel.settings import finite, ge
from sigma_optimisers.intervals import INTERVAL, intervals


@define(eq=False)
class StepDecay(Schedule):
    """Decay by ``factor`` at the end of every interval: ``factor ** floor(t / every)``.

    Same as ``torch.optim.lr_scheduler.StepLR``.

    Args:
        every: Interval between two decays, such as ``"10 epochs"`` or ``"500 iterations"``.
        factor: Factor at the end of every interval.
    """

    every: str = field(validator=INTERVAL)
    factor: float = field(default=0.1, validator=[finite, ge(0)])

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        whole = np.floor(intervals(self.every, iterations, epochs))
        return np.asarray(self.factor**whole)
