"""Cyclic schedule: triangular waves between a low and the peak."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel import duration
from sigma_kernel.contracts import Schedule
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import finite, ge, le, optional
from sigma_optimisers.intervals import INTERVAL, ticks


@define(eq=False)
class Cyclic(Schedule):
    """Cycle from ``low`` to 1 over ``rise`` and back over ``fall``, which defaults to ``rise``.

    The setting is the peak.  Each cycle's amplitude is ``shrink`` times that of the one before.  Smith, Cyclical
    Learning Rates for Training Neural Networks, 2017.  Same as ``torch.optim.lr_scheduler.CyclicLR`` with the setting
    as ``max_lr``: ``triangular``, and ``triangular2`` if ``shrink`` is 0.5.  Raises SigmaConfigError if ``rise`` and
    ``fall`` have different units.

    Args:
        rise: Time from ``low`` to 1, such as ``"10 epochs"`` or ``"500 iterations"``.
        fall: Time back, in the same unit; by default that of the rise.
        low: Factor at both ends of a cycle.
        shrink: Factor on the amplitude of each cycle against the one before.
    """

    rise: str = field(validator=INTERVAL)
    fall: str | None = field(default=None, validator=optional(INTERVAL))
    low: float = field(default=0.1, validator=[finite, ge(0), le(1)])
    shrink: float = field(default=1.0, validator=[finite, ge(0), le(1)])

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if ``rise`` and ``fall`` have different units."""
        if duration(self.rise)[1] is not duration(self.fall or self.rise)[1]:
            raise SigmaConfigError(f"cyclic: {self.rise!r} and {self.fall!r} have different units. Use one unit.")

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        rise, fall = duration(self.rise)[0], duration(self.fall or self.rise)[0]
        cycles = ticks(self.rise, iterations, epochs) / (rise + fall)
        place, top = cycles % 1.0, rise / (rise + fall)
        height = np.where(place <= top, place / top, (1.0 - place) / (1.0 - top))
        return np.asarray(self.low + (1.0 - self.low) * height * self.shrink ** np.floor(cycles))
