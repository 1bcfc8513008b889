"""Product of several schedules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from sigma_kernel.contracts import Schedule
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import deep_iterable
from sigma_optimisers.intervals import SCHEDULE


@define(eq=False)
class Product(Schedule):
    """Multiply the factors of several schedules, all on the same clock.

    Same as ``torch.optim.lr_scheduler.ChainedScheduler``.  Raises SigmaConfigError if there is no schedule.

    Args:
        of: Schedules whose factors are multiplied.
    """

    of: Sequence[Schedule] = field(validator=deep_iterable(SCHEDULE))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for an empty product: it is more likely a mistake than a constant 1."""
        if not self.of:
            raise SigmaConfigError("product: there is nothing to multiply. List schedules in `of`.")

    @property
    def needs_end(self) -> bool:
        """Return whether one of them needs the end of the run."""
        return any(schedule.needs_end for schedule in self.of)

    def with_end(self, end: int) -> Schedule:
        """Return the product for a run of so many iterations."""
        return Product([schedule.with_end(end) for schedule in self.of])

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        return np.asarray(np.prod([schedule.factors(iterations, epochs) for schedule in self.of], axis=0))
