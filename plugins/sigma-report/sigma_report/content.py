"""The content of samples as plain values: columns by name, text, pictures as PNG."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from struct import pack
from typing import Any

import numpy as np

SHOWN = 12  # values of an array without names
CHANNELS = (1, 3, 4)  # grey, colour, colour with opacity
COLOURS = {1: 0, 3: 2, 4: 6}  # types of PNG


def describe_sample(values: np.ndarray, names: Sequence[Any], labels: Sequence[Any], span: Any) -> dict[str, Any]:
    """Return a sample of a section: its ``values`` by name, its ``text``, a ``picture``, or its first values.

    ``names`` are those of the last axis, ``labels`` the characters that indices stand for, and ``span`` the least and
    the greatest value of all samples, which are black and white.
    """
    if values.ndim == 1 and len(names) == len(values):
        return {"values": dict(zip(map(str, names), values.tolist(), strict=True))}
    if is_text(values, labels):
        return {"text": "".join(str(labels[index]) for index in values.tolist())}
    if (pixels := as_pixels(values, span)) is not None:
        return {"picture": encode_png(pixels), "shape": [*values.shape]}
    return {"first": values.reshape(-1)[:SHOWN].tolist(), "shape": [*values.shape]}


def is_text(values: np.ndarray, labels: Sequence[Any]) -> bool:
    """Return whether values are indices of characters."""
    characters = bool(labels) and all(isinstance(label, str) and len(label) == 1 for label in labels)
    whole = values.ndim == 1 and np.issubdtype(values.dtype, np.integer) and values.size > 0
    return characters and bool(whole) and values.min() >= 0 and values.max() < len(labels)


def as_pixels(values: np.ndarray, span: tuple[float, float]) -> np.ndarray | None:
    """Return the pixels of a picture, uint8 ``(height, width, channels)``; None for other shapes.

    Pictures have the shape ``(height, width)``, ``(channels, height, width)`` or ``(height, width, channels)``.
    """
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or not values.size or not {values.shape[0], values.shape[2]} & {*CHANNELS}:
        return None
    pixels = np.moveaxis(values, 0, -1) if values.shape[0] in CHANNELS else values
    if pixels.dtype == np.uint8:
        return pixels
    low, high = span
    scaled = (np.nan_to_num(pixels.astype(float), nan=low, posinf=high, neginf=low) - low) / ((high - low) or 1.0)
    return np.asarray((scaled.clip(0, 1) * 255).round().astype(np.uint8))


def find_span(values: np.ndarray) -> tuple[float, float]:
    """Return the least and the greatest finite value; 0 and 1 if there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def encode_png(pixels: np.ndarray) -> str:
    """Return pixels ``(height, width, channels)`` as PNG in base 64."""
    height, width, channels = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # filter 0
    header = pack(">IIBBBBB", width, height, 8, COLOURS[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    framed = (pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(framed)).decode()


def describe_map(values: np.ndarray) -> dict[str, Any]:
    """Return a map over the places of a sample as a picture, black at 0, if it has the shape of one."""
    pixels = as_pixels(values, (0.0, float(np.nanmax(values, initial=0.0))))
    return {} if pixels is None else {"picture": encode_png(pixels), "shape": [*values.shape]}


def name_values(values: np.ndarray, names: Sequence[Any]) -> Mapping[str, float]:
    """Return the values of a vector by the names of its columns, or by their places."""
    labels = map(str, names) if len(names) == len(values) else (f"column {i}" for i in range(len(values)))
    return dict(zip(labels, values.tolist(), strict=True))
