"""Pictures as PNG files, 8 bits a channel (W3C, Portable Network Graphics, third edition)."""

from __future__ import annotations

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR = {1: 0, 3: 2}  # channels to colour type: shades of grey, red-green-blue
MOST_SIDE, MOST_PIXELS = 2**14, 2**26


def encode_png(pixels: np.ndarray) -> bytes:
    """Return the file of a picture, uint8 ``(height, width, channels)`` with 1 or 3 channels."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter type, 0 for none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_encode_chunk(name, data) for name, data in chunks)


def _encode_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def decode_png(data: bytes) -> np.ndarray:
    """Return the pixels of a file that :func:`encode_png` has written; raise ValueError for any other."""
    start = len(SIGNATURE) + 8
    if data[:start] != SIGNATURE + struct.pack(">I", 13) + b"IHDR" or data[start + 21 : start + 25] != b"IDAT":
        raise ValueError("not a PNG file of this module")
    width, height, depth, colour = struct.unpack(">IIBB", data[start : start + 10])
    channels = next((channels for channels, type_ in COLOUR.items() if (depth, type_) == (8, colour)), 0)
    if not channels or not (
        0 < min(width, height) <= max(width, height) <= MOST_SIDE and width * height <= MOST_PIXELS
    ):
        raise ValueError(f"a picture of {width} x {height} pixels with {depth} bits and colour type {colour}")
    size = height * (1 + width * channels)
    (length,) = struct.unpack(">I", data[start + 17 : start + 21])
    rows = zlib.decompressobj().decompress(data[start + 25 : start + 25 + length], size)
    if len(rows) != size or any(rows[:: 1 + width * channels]):
        raise ValueError("rows of another size, or filtered ones")
    return np.frombuffer(rows, np.uint8).reshape(height, -1)[:, 1:].reshape(height, width, channels).copy()
