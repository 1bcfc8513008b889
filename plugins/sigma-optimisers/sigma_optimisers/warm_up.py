"""Linear warm-up, then another schedule."""

from __future__ import annotations

import numpy as np
from attrs import define, evolve, field

from sigma_kernel import TimeScale, duration
from sigma_kernel.contracts import Schedule
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import finite, ge, optional
from sigma_optimisers.intervals import INTERVAL, SCHEDULE, intervals


@define(eq=False)
class WarmUp(Schedule):
    """Rise linearly from ``start`` to 1 over ``duration``, then follow ``then``, or stay at 1.

    The factor rises with every iteration, also within an epoch: half-way through ``"1 epoch"`` it is half-way up.
    ``then`` counts the warm-up's unit, epochs or iterations, from the end of the warm-up; the other unit is not
    shifted. One that lasts as long as the run follows a warm-up in iterations. Same as
    ``torch.optim.lr_scheduler.LinearLR``, chained with ``then`` by ``SequentialLR``. Goyal et al., Accurate, Large
    Minibatch SGD, 2017.

    Args:
        duration: Time of the rise, such as ``"10 epochs"`` or ``"500 iterations"``.
        start: Factor at the beginning.
        then: Schedule after the rise; by default the factor stays 1.
    """

    duration: str = field(validator=INTERVAL)
    start: float = field(default=1.0 / 3.0, validator=[finite, ge(0)])
    then: Schedule | None = field(default=None, kw_only=True, validator=optional(SCHEDULE))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a warm-up in epochs before a schedule that ends with the run."""
        if self.needs_end and duration(self.duration)[1] is TimeScale.EPOCH:
            raise SigmaConfigError(
                f"warm_up: {self.duration!r} is in epochs, and `then` ends with the run, counted in iterations. "
                "Give the warm-up in iterations, or `then` a time in epochs."
            )

    @property
    def needs_end(self) -> bool:
        """Return whether the schedule after it needs the end of the run."""
        return self.then is not None and self.then.needs_end

    def with_end(self, end: int) -> Schedule:
        """Return the schedule for a run of so many iterations: what follows has those after the warm-up."""
        if self.then is None or not self.needs_end:
            return self
        return evolve(self, then=self.then.with_end(max(1, end - int(duration(self.duration)[0]))))

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        passed = intervals(self.duration, iterations, epochs)
        rise = self.start + (1.0 - self.start) * np.minimum(passed, 1.0)
        return (
            rise
            if self.then is None
            else np.where(passed < 1.0, rise, self._delay_factors(self.then, iterations, epochs))
        )

    def _delay_factors(self, then: Schedule, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        count, scale = duration(self.duration)
        if scale is TimeScale.EPOCH:
            return then.factors(iterations, np.maximum(epochs - count, 0))
        return then.factors(np.maximum(iterations - count, 0), epochs)
