"""One-cycle schedule: rise to the peak once, then anneal far below the start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import define, evolve, field

from sigma_kernel import TimeScale, duration
from sigma_kernel.contracts import Schedule
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import finite, ge, in_, le
from sigma_optimisers.intervals import RUN, TOTAL, ticks

CURVES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "cosine": lambda x: 0.5 - 0.5 * np.cos(np.pi * x),
    "linear": lambda x: x,
}


@define(eq=False)
class OneCycle(Schedule):
    """Rise from ``start`` to 1 over the fraction ``rise`` of ``total``, anneal to ``floor`` over the rest, stay there.

    The setting is the peak.  Of a total in iterations, the last step, ``total - 1``, has the floor; one in epochs moves
    with every iteration, too, and reaches the floor at its end.  Smith and Topin, Super-Convergence: Very Fast Training
    of Neural Networks Using Large Learning Rates, 2018.  Same as ``torch.optim.lr_scheduler.OneCycleLR`` with the
    setting as ``max_lr``, without cycling momentum.  Raises SigmaConfigError if the rise or the fall is shorter than
    one step.

    Args:
        total: Time of the whole cycle, such as ``"10 epochs"`` or ``"500 iterations"``; ``"run"``
            for the length of the run.
        rise: Fraction of the total until the peak.
        start: Factor at the beginning.
        floor: Factor at the end.
        curve: Form of rise and fall.
    """

    total: str = field(validator=TOTAL)
    rise: float = field(default=0.3, validator=[finite, ge(0), le(1)])
    start: float = field(default=1 / 25, validator=[finite, ge(0)])
    floor: float = field(default=1 / 25e4, validator=[finite, ge(0)])
    curve: str = field(default="cosine", validator=in_(tuple(CURVES)))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if the rise or the fall is shorter than one step."""
        total, last = (1.0, 0.0) if self.needs_end else self._length()
        if not last < self.rise * total < total:
            raise SigmaConfigError(
                f"one_cycle: rises for {self.rise:g} of {self.total!r}; rise and fall must each last a step at least."
            )

    def _length(self) -> tuple[float, float]:
        """Return the total, and the length of its last step, which is at the floor; an epoch has many steps."""
        total, scale = duration(self.total)
        return total, 0.0 if scale is TimeScale.EPOCH else 1.0

    @property
    def needs_end(self) -> bool:
        """Return whether it lasts as long as the run."""
        return self.total == RUN

    def with_end(self, end: int) -> Schedule:
        """Return the schedule of a run of so many iterations."""
        return evolve(self, total=f"{end} iterations") if self.needs_end else self

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        (total, last), curve = self._length(), CURVES[self.curve]
        passed = ticks(self.total, iterations, epochs)
        peak = self.rise * total - last
        up, down = np.clip(passed / peak, 0.0, 1.0), np.clip((passed - peak) / (total - last - peak), 0.0, 1.0)
        rising, falling = self.start + (1.0 - self.start) * curve(up), 1.0 + (self.floor - 1.0) * curve(down)
        return np.asarray(np.where(passed <= peak, rising, falling))
