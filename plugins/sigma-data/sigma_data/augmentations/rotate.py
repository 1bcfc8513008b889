"""Turn pictures by small angles."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.bilinear import resample
from sigma_data.varying import Sections, pictures_of
from sigma_kernel import Augmentation
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import and_, ge, le


@frozen
class Rotate(Augmentation):
    """Turn each picture about its middle by a random angle, with bilinear interpolation.

    Args:
        degrees: Greatest angle, in either direction.
        fill: Value of the corners that the turned picture does not reach.
        section: Section of the pictures, (channels, height, width) or (height, width).
    """

    degrees: float = field(default=10.0, validator=and_(ge(0), le(180)))
    fill: float = 0.0
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the turned pictures."""
        pictures = pictures_of("rotate", sections, self.section)
        turned = turn(pictures, draw.uniform((), -self.degrees, self.degrees), self.fill)
        return {**sections, self.section: turned}


def turn(pictures: np.ndarray, degrees: np.ndarray, fill: float) -> np.ndarray:
    """Return pictures turned anticlockwise, each by its angle."""
    angles = np.deg2rad(degrees)
    cos, sin = np.cos(angles), np.sin(angles)
    return resample(pictures, np.moveaxis(np.array([[cos, sin], [-sin, cos]]), -1, 0), fill)
