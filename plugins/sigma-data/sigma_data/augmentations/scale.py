"""Enlarge and reduce what pictures show."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.bilinear import resample
from sigma_data.varying import Sections, pictures_of
from sigma_kernel import Augmentation
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import must

ORDERED = must(lambda value: 0 < value[0] <= value[1], "two numbers above 0, the lower one first")


@frozen
class Zoom(Augmentation):
    """Enlarge or reduce each picture about its middle by a random factor, with bilinear interpolation.

    Pictures keep their size: what is enlarged is cropped, and around what is reduced there is a frame.

    Args:
        factors: Least and greatest factor; all logarithms between both are equally probable.
        fill: Value of the frame.
        section: Section of the pictures, (channels, height, width) or (height, width).
    """

    factors: tuple[float, float] = field(default=(0.9, 1.1), validator=ORDERED)
    fill: float = 0.0
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the scaled pictures."""
        pictures = pictures_of("scale", sections, self.section)
        factors = np.exp(draw.uniform((), *np.log(self.factors).tolist()))
        return {**sections, self.section: zoom(pictures, factors, self.fill)}


def zoom(pictures: np.ndarray, factors: np.ndarray, fill: float) -> np.ndarray:
    """Return pictures, each enlarged by its factor."""
    return resample(pictures, np.eye(2) / factors[:, None, None], fill)
