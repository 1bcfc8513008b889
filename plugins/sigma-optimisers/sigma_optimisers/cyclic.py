"""Rise and fall again and again, in triangles."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel.clock import duration
from sigma_kernel.contracts import Schedule
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import finite, ge, le, optional
from sigma_optimisers.intervals import INTERVAL, ticks


@define(eq=False)
class Cyclic(Schedule):
    """Go from ``low`` to 1 in each interval ``rise``, and back in each interval ``fall``, which is as long by default.

    The setting is the greatest value.  Each cycle is ``shrink`` times as high as the one before.  Smith, Cyclical
    Learning Rates for Training Neural Networks, 2017.  Same as ``torch.optim.lr_scheduler.CyclicLR`` with the setting
    as ``max_lr``: ``triangular``, and ``triangular2`` where ``shrink`` is 0.5.  A rise in epochs with a fall in
    iterations is a SigmaConfigError.
    """

    rise: str = field(validator=INTERVAL)
    fall: str | None = field(default=None, validator=optional(INTERVAL))
    low: float = field(default=0.1, validator=[finite, ge(0), le(1)])
    shrink: float = field(default=1.0, validator=[finite, ge(0), le(1)])

    def __attrs_post_init__(self) -> None:
        """Refuse two clocks at once."""
        if duration(self.rise)[1] is not duration(self.fall or self.rise)[1]:
            raise SigmaConfigError(f"cyclic: {self.rise!r} and {self.fall!r} count different things. Use one unit.")

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor for each iteration."""
        rise, fall = duration(self.rise)[0], duration(self.fall or self.rise)[0]
        cycles = ticks(self.rise, iterations, epochs) / (rise + fall)
        place, top = cycles % 1.0, rise / (rise + fall)
        height = np.where(place <= top, place / top, (1.0 - place) / (1.0 - top))
        return np.asarray(self.low + (1.0 - self.low) * height * self.shrink ** np.floor(cycles))
