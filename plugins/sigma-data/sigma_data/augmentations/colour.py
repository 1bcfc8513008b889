"""Vary the brightness, the contrast and the saturation of pictures."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.varying import Sections, add_axes, as_type, pictures_of
from sigma_kernel import Augmentation, SigmaDataError
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import and_, ge, le

SHARE = and_(ge(0), le(1))
GREY = np.array([0.299, 0.587, 0.114])  # of red, green and blue: ITU-R BT.601


@frozen
class Colour(Augmentation):
    """Vary brightness, contrast and saturation of each picture, each by a random factor of 1 - share to 1 + share.

    Brightness multiplies the values; contrast multiplies their distance from the mean grey of the picture; saturation
    their distance from the grey of the pixel, which changes nothing in grey pictures. Floats are not limited to a
    range. Raises SigmaDataError for pictures of another number of channels than 1 or 3.

    Args:
        brightness: Share of variation of brightness.
        contrast: Share of variation of contrast.
        saturation: Share of variation of saturation.
        section: Section of the pictures, (channels, height, width) or (height, width).
    """

    brightness: float = field(default=0.2, validator=SHARE)
    contrast: float = field(default=0.2, validator=SHARE)
    saturation: float = field(default=0.2, validator=SHARE)
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the recoloured pictures."""
        pictures = pictures_of("colour", sections, self.section)
        shares = np.array([self.brightness, self.contrast, self.saturation])
        factors = 1.0 + shares * draw.uniform((3,), -1.0, 1.0)
        return {**sections, self.section: recolour(pictures, factors)}


def recolour(pictures: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return pictures with factors on brightness, contrast and saturation, of shape (rows, 3)."""
    brightness, contrast, saturation = (add_axes(column, pictures) for column in factors.T)
    values = pictures * brightness
    mean = _grey(values).mean(axis=(-2, -1), keepdims=True)
    values = mean + (values - mean) * contrast
    grey = _grey(values)
    return as_type(grey + (values - grey) * saturation, pictures.dtype)


def _grey(pictures: np.ndarray) -> np.ndarray:
    """Return pictures of one channel."""
    if pictures.ndim == 3 or pictures.shape[-3] == 1:
        return pictures
    if pictures.shape[-3] != 3:
        raise SigmaDataError(f"colour: pictures have {pictures.shape[-3]} channels. It takes grey ones, or 3 colours.")
    return np.asarray(np.einsum("c,...chw->...hw", GREY, pictures)[..., None, :, :])
