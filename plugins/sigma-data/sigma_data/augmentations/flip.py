"""Mirror pictures."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.varying import Sections, pictures_of
from sigma_kernel import Augmentation
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import and_, ge, le

SHARE = and_(ge(0), le(1))


@frozen
class Flip(Augmentation):
    """Mirror a share of the pictures, left to right and upside down.

    Args:
        horizontal: Share of the pictures whose left and right are exchanged.
        vertical: Share of the pictures that are turned upside down, independently.
        section: Section of the pictures, (channels, height, width) or (height, width).
    """

    horizontal: float = field(default=0.5, validator=SHARE)
    vertical: float = field(default=0.0, validator=SHARE)
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the mirrored pictures."""
        pictures = pictures_of("flip", sections, self.section)
        mirrored, sides = np.empty_like(pictures), draw.uniform() < self.horizontal
        for row, (side, up) in enumerate(zip(sides.tolist(), (draw.uniform() < self.vertical).tolist(), strict=True)):
            mirrored[row] = pictures[row][..., :: -1 if up else 1, :: -1 if side else 1]
        return {**sections, self.section: mirrored}
