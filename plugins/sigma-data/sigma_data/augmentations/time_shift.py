"""Shift sequences in time."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.varying import Sections, numbers_of
from sigma_kernel import Augmentation, SigmaDataError
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import ge


@frozen
class TimeShift(Augmentation):
    """Shift each sequence by a random number of steps, later or earlier.

    Raises SigmaDataError for samples that have no steps.

    Args:
        steps: Greatest number of steps.
        wrap: Whether the steps that leave at one end enter at the other; else the step at the end is repeated.
        section: Section of the sequences, (steps, ...).
    """

    steps: int = field(default=2, validator=ge(1))
    wrap: bool = False
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the shifted sequences."""
        values = numbers_of("time_shift", sections, self.section)
        if values.ndim < 2:
            raise SigmaDataError(f"time_shift: section {self.section!r} has numbers, not sequences. Set `section`.")
        length = values.shape[1]
        places = np.arange(length) - draw.integers(-self.steps, self.steps)[:, None]
        places = places % length if self.wrap else np.clip(places, 0, length - 1)
        return {**sections, self.section: values[np.arange(len(values))[:, None], places]}
