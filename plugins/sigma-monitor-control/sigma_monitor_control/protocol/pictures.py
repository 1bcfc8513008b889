"""Arrays as pictures: rows of pixels, encoded for the client."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sigma_kernel.errors import SigmaConfigError

CHANNELS = (1, 3)


def is_picture(shape: Sequence[int]) -> bool:
    """Return whether samples of a shape are pictures: ``(height, width)``, or with 1 or 3 channels before these."""
    return (len(shape) == 2 or (len(shape) == 3 and shape[0] in CHANNELS)) and min(shape) > 0 and max(shape[-2:]) > 1


def picture(values: np.ndarray, low: float, high: float) -> dict[str, Any]:
    """Return an array ``(height, width)`` or ``(channels, height, width)`` as a picture, black at ``low``.

    Its pixels are bytes in base64, row by row, with interleaved channels.
    """
    *channels, height, width = values.shape
    scale = 255.0 / (high - low) if high > low else 0.0
    shades = np.nan_to_num((values.astype(np.float64) - low) * scale, nan=0.0, posinf=255.0, neginf=0.0)
    pixels = np.clip(np.rint(shades), 0, 255).astype(np.uint8)
    if channels:
        pixels = np.moveaxis(pixels, 0, -1)
    count = channels[0] if channels else 1
    return {"width": width, "height": height, "channels": count, "pixels": b64encode(pixels.tobytes()).decode()}


def decode_picture(found: Mapping[str, Any], shape: Sequence[int], low: float, high: float) -> np.ndarray:
    """Return a picture as an array of a shape, whose values reach from ``low`` to ``high``.

    Raises SigmaConfigError if its size is another one.
    """
    *channels, height, width = shape
    count = channels[0] if channels else 1
    try:
        pixels = np.frombuffer(b64decode(str(found.get("pixels")), validate=True), np.uint8)
    except ValueError:
        raise SigmaConfigError("picture: 'pixels' must be bytes in base64.") from None
    if pixels.size != height * width * count:
        size = f"{width} x {height} with {count} channel{'s' * (count > 1)}"
        raise SigmaConfigError(f"picture: must have {height * width * count} pixels, {size} (got {pixels.size}).")
    shades = low + pixels.reshape(height, width, count) / 255.0 * (high - low)
    return np.moveaxis(shades, -1, 0).reshape(tuple(shape))
