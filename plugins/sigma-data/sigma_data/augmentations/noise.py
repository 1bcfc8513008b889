"""Add noise to numbers."""

from __future__ import annotations

from attrs import field, frozen

from sigma_data.varying import Sections, as_type, numbers_of
from sigma_kernel import Augmentation
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import ge


@frozen
class Jitter(Augmentation):
    """Add independent normal noise to every number. The layer ``gaussian_noise`` does so after preprocessors.

    Args:
        deviation: Standard deviation of the noise, in the units of the data.
        section: Section of the numbers. Integers stay integers, in the range of their type.
    """

    deviation: float = field(default=0.1, validator=ge(0))
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with noise."""
        values = numbers_of("noise", sections, self.section)
        noisy = values + draw.normal(values.shape[1:], deviation=self.deviation)
        return {**sections, self.section: as_type(noisy, values.dtype)}
