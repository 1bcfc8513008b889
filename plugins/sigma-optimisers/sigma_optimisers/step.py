"""Multiply by a factor at regular intervals."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_kernel.contracts import Schedule
from sigma_optimisers import settings


@define(eq=False)
class Step(Schedule):
    """Multiply by ``factor`` at the end of every interval: ``factor ** floor(t / every)``.

    Same as ``torch.optim.lr_scheduler.StepLR``.
    """

    every: str = settings.interval()
    factor: float = settings.number(0.1, low=0.0)

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        whole = np.floor(settings.intervals(self.every, iterations, epochs))
        return np.asarray(self.factor**whole)
