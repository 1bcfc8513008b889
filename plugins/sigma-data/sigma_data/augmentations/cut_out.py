"""Cover a part of each picture.

T. DeVries, G. W. Taylor, Improved regularization of convolutional neural networks with cutout, 2017.
"""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.varying import Sections, as_type, pictures_of
from sigma_kernel import Augmentation
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import ge


@frozen
class CutOut(Augmentation):
    """Cover a square of each picture, whose middle is any of the pixels: at the border, a part of it is outside.

    Source: T. DeVries, G. W. Taylor, Improved regularization of convolutional neural networks with cutout, 2017.

    Args:
        size: Pixels of a side of the square.
        fill: Value of the covered pixels.
        section: Section of the pictures, (channels, height, width) or (height, width).
    """

    size: int = field(default=8, validator=ge(1))
    fill: float = 0.0
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the covered pictures."""
        pictures = pictures_of("cut_out", sections, self.section)
        height, width = pictures.shape[-2:]
        down, right = (
            abs(np.arange(side) - first[:, None] - (self.size - 1) / 2) <= (self.size - 1) / 2
            for side, first in ((side, draw.integers(0, side - 1) - self.size // 2) for side in (height, width))
        )
        covered = (down[:, :, None] & right[:, None]).reshape(len(pictures), *[1] * (pictures.ndim - 3), height, width)
        return {**sections, self.section: np.where(covered, as_type(np.asarray(self.fill), pictures.dtype), pictures)}
