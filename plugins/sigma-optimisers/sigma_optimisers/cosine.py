"""Cosine annealing schedule."""

from __future__ import annotations

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.contracts import Schedule
from sigma_kernel.settings import finite, ge, le
from sigma_optimisers.intervals import RUN, TOTAL, intervals


@define(eq=False)
class Cosine(Schedule):
    """Anneal from 1 to ``floor`` along half a cosine over ``total``, then stay there.

    ``floor + (1 - floor) * (1 + cos(pi * t / total)) / 2``.

    Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.  Same as
    ``torch.optim.lr_scheduler.CosineAnnealingLR``, stepped after each iteration, up to ``total``; PyTorch's rises again
    after that.

    Args:
        total: Time of the annealing, such as ``"10 epochs"`` or ``"500 iterations"``; ``"run"``
            for the length of the run.
        floor: Factor at the end.
    """

    total: str = field(validator=TOTAL)
    floor: float = field(default=0.0, validator=[finite, ge(0), le(1)])

    @property
    def needs_end(self) -> bool:
        """Return whether it lasts as long as the run."""
        return self.total == RUN

    def with_end(self, end: int) -> Schedule:
        """Return the schedule of a run of so many iterations."""
        return evolve(self, total=f"{end} iterations") if self.needs_end else self

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        passed = np.minimum(intervals(self.total, iterations, epochs), 1.0)
        return np.asarray(self.floor + (1.0 - self.floor) * 0.5 * (1.0 + np.cos(np.pi * passed)))
