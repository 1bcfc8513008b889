"""Write images as PNG files, 8 bits a channel (W3C, Portable Network Graphics, third edition)."""

from __future__ import annotations

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR = {1: 0, 3: 2}  # channels to colour type: shades of grey, red-green-blue


def png(image: np.ndarray) -> bytes:
    """Return the file of an image, uint8 ``(height, width, channels)`` with 1 or 3 channels."""
    height, width, channels = image.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter type, 0 for none
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def shades(image: np.ndarray, zoom: int = 1) -> np.ndarray:
    """Return an image ``(height, width)`` or ``(channels, height, width)`` as uint8, rescaled from minimum to maximum.

    ``zoom`` repeats each pixel that many times in both directions.
    """
    planes = np.atleast_3d(image) if image.ndim == 2 else np.moveaxis(image, 0, -1)
    low, high = float(planes.min()), float(planes.max())
    scaled = (planes - low) / (high - low) if high > low else np.zeros_like(planes)
    return np.round(scaled * 255).astype(np.uint8).repeat(zoom, 0).repeat(zoom, 1)
