"""Move pictures, by cropping them from a frame."""

from __future__ import annotations

from typing import Literal

import numpy as np
from attrs import field, frozen
from numpy.lib.stride_tricks import sliding_window_view

from sigma_data.varying import Sections, as_type, pictures_of
from sigma_kernel import Augmentation, SigmaDataError
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import ge


@frozen
class RandomCrop(Augmentation):
    """Pad pictures on all sides, and crop each at a random place to its former size.

    Raises SigmaDataError for pictures that are too small to be mirrored.

    Args:
        padding: Pixels added on each side: pictures move by at most that many.
        border: What the padding shows: ``constant``, the value ``fill``; ``edge``, the nearest pixel; ``reflect``, the
            picture mirrored at its border.
        fill: Value of constant padding.
        section: Section of the pictures, (channels, height, width) or (height, width).
    """

    padding: int = field(default=4, validator=ge(1))
    border: Literal["constant", "edge", "reflect"] = "constant"
    fill: float = 0.0
    section: str = field(default="inputs", kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the moved pictures."""
        pictures = pictures_of("crop", sections, self.section)
        size = pictures.shape[-2:]
        if self.border == "reflect" and self.padding >= min(size):
            raise SigmaDataError(f"crop: pictures of {size} cannot be mirrored by {self.padding}. Set a lower padding.")
        sides = [(0, 0)] * (pictures.ndim - 2) + [(self.padding, self.padding)] * 2
        if self.border == "constant":
            fill = as_type(np.asarray(self.fill), pictures.dtype)
            padded = np.pad(pictures, sides, constant_values=fill)
        else:
            padded = np.pad(pictures, sides, self.border)
        windows = sliding_window_view(padded, size, (-2, -1))
        down, right = draw.integers(0, 2 * self.padding, (2,)).T
        cropped = np.empty_like(pictures)
        for row, place in enumerate(zip(down.tolist(), right.tolist(), strict=True)):
            cropped[row] = windows[(row, ..., *place, slice(None), slice(None))]
        return {**sections, self.section: cropped}
