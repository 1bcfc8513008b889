"""Mask runs of steps of sequences.

D. S. Park et al., SpecAugment: A simple data augmentation method for automatic speech recognition, Interspeech 2019.
"""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.varying import Sections, as_type, numbers_of
from sigma_kernel import Augmentation, SigmaDataError
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import ge


@frozen
class MaskSteps(Augmentation):
    """Replace a run of neighbouring steps of each sequence, of random length and place, by one value.

    Lengths are uniform from 0 to ``steps``, and places uniform among those at which the run is within the sequence.
    Of windows of a series (steps, columns), ``axis = 0`` masks times and ``axis = 1`` neighbouring columns; of
    spectrograms, times or frequencies.  Raises SigmaDataError for samples without such an axis.

    Source: D. S. Park et al., SpecAugment, Interspeech 2019, with ``times`` masks of each kind.

    Args:
        steps: Greatest length of a run.
        times: Number of runs, which may overlap.
        fill: Value of what is masked; 0 is the mean of columns that are standardised.
        axis: Axis of a sample whose entries are masked.
        section: Section of the sequences, (steps, ...).
    """

    steps: int = field(default=8, validator=ge(1))
    times: int = field(default=1, validator=ge(1))
    fill: float = 0.0
    axis: int = field(default=0, validator=ge(0))
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with masked steps."""
        values = numbers_of("mask_steps", sections, self.section)
        if values.ndim < 2 + self.axis:
            raise SigmaDataError(
                f"mask_steps: section {self.section!r} has samples of shape {values.shape[1:]}, without an axis "
                f"{self.axis} to mask. Set `axis` or `section`."
            )
        length = values.shape[1 + self.axis]
        masked = np.zeros((len(values), length), bool)
        for _ in range(self.times):
            masked |= _draw_run(draw, min(self.steps, length), length)
        where = masked.reshape(len(values), *[1] * self.axis, length, *[1] * (values.ndim - self.axis - 2))
        return {**sections, self.section: np.where(where, as_type(np.asarray(self.fill), values.dtype), values)}


def _draw_run(draw: RowDraws, most: int, length: int) -> np.ndarray:
    """Return whether each step is in a run of a sequence, (rows, length)."""
    sizes = draw.integers(0, most)
    first = np.floor(draw.uniform() * (length - sizes + 1))
    steps = np.arange(length)
    return np.asarray((steps >= first[:, None]) & (steps < (first + sizes)[:, None]))
