"""The content of samples: values by name, text, pictures."""

from __future__ import annotations

from base64 import b64decode
from struct import unpack
from zlib import crc32, decompress

import numpy as np
import pytest

from sigma_report.content import as_pixels, describe_map, describe_sample, encode_png, find_span


def read_png(text: str) -> np.ndarray:
    """Return the pixels of a PNG without filters, as its specification reads it."""
    data, chunks, place = b64decode(text), dict[bytes, bytes](), 8
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    while place < len(data):
        (size,) = unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        assert unpack(">I", data[place + 8 + size : place + 12 + size]) == (crc32(kind + body),)
        chunks[kind], place = body, place + 12 + size
    width, height, depth, colour = unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    lines = np.frombuffer(decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, {0: 1, 2: 3, 6: 4}[colour])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_is_written_as_png_to_the_bit(channels):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels)).astype(np.uint8)
    assert (read_png(encode_png(pixels)) == pixels).all()


def test_pictures_have_channels_first_or_last_or_none_and_are_scaled_by_the_span_of_all():
    values = np.array([[[0.0, 1.0], [0.5, np.nan]]])
    pixels = as_pixels(values, (0.0, 1.0))
    assert pixels is not None
    assert pixels[..., 0].tolist() == [[0, 255], [128, 0]]
    for shape in ((6, 5, 3), (3, 6, 5), (6, 5)):
        found = as_pixels(np.zeros(shape), (0.0, 0.0))
        assert found is not None
        assert found.shape[:2] == (6, 5)
    assert as_pixels(np.zeros((6, 5, 7)), (0.0, 1.0)) is None
    assert as_pixels(np.zeros((0, 5, 3)), (0.0, 1.0)) is None


def test_the_span_is_of_finite_values():
    assert find_span(np.array([np.nan, -2.0, np.inf, 3.0])) == (-2.0, 3.0)
    assert find_span(np.array([np.nan])) == (0.0, 1.0)


def test_a_sample_is_shown_by_its_columns_as_text_or_by_its_first_values():
    assert describe_sample(np.array([1.0, 2.0]), ["a", "b"], (), (0, 1)) == {"values": {"a": 1.0, "b": 2.0}}
    assert describe_sample(np.array([1, 0, 1]), (), ["a", "b"], (0, 1)) == {"text": "bab"}
    assert describe_sample(np.array([1, 0, 5]), (), ["a", "b"], (0, 1)) == {"first": [1, 0, 5], "shape": [3]}
    assert describe_sample(np.arange(20.0), (), (), (0, 1))["first"] == [*range(12)]


def test_a_map_is_black_at_0():
    pixels = read_png(describe_map(np.array([[0.0, 2.0], [1.0, 0.0]]))["picture"])
    assert pixels[..., 0].tolist() == [[0, 255], [128, 0]]
    assert describe_map(np.zeros((2, 3, 4, 5))) == {}
