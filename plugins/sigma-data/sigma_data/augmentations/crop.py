"""Move pictures, by cropping them from a frame."""

from __future__ import annotations

from collections.abc import Sequence
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
        places = draw.integers(0, 2 * self.padding, (2,)).tolist()
        crop = self._move if self.border == "constant" else self._crop_padded
        return {**sections, self.section: crop(pictures, places)}

    def _move(self, pictures: np.ndarray, places: Sequence[Sequence[int]]) -> np.ndarray:
        """Return pictures cropped from a frame of one value, which is not built."""
        cropped = np.full_like(pictures, as_type(np.asarray(self.fill), pictures.dtype))
        for row, (down, right) in enumerate(places):
            (to_down, from_down), (to_right, from_right) = map(self._overlap, (down, right), pictures.shape[-2:])
            cropped[row, ..., to_down, to_right] = pictures[row, ..., from_down, from_right]
        return cropped

    def _overlap(self, place: int, size: int) -> tuple[slice, slice]:
        """Return where in a cropped side a picture is, and what of its side that is."""
        shift = place - self.padding
        return slice(max(0, -shift), max(0, size - max(0, shift))), slice(max(0, shift), max(0, size + min(0, shift)))

    def _crop_padded(self, pictures: np.ndarray, places: Sequence[Sequence[int]]) -> np.ndarray:
        """Return pictures cropped from a frame of their own pixels."""
        sides = [(0, 0)] * (pictures.ndim - 2) + [(self.padding, self.padding)] * 2
        windows = sliding_window_view(np.pad(pictures, sides, self.border), pictures.shape[-2:], (-2, -1))
        cropped = np.empty_like(pictures)
        for row, (down, right) in enumerate(places):
            cropped[row] = windows[row, ..., down, right, :, :]
        return cropped
