"""Media as values: what they accept, their bytes as other programs read them, and their drawings."""

from __future__ import annotations

import hashlib
import io
import json
import wave
import zlib
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel.contracts import HistogramValue, Media, MediaEntry, PictureValue, SoundValue, TableValue, TextValue
from sigma_kernel.contracts.media import MOST_BYTES, SIDE, decode_media, describe_media
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.png import decode_png, encode_png

DRAW = np.random.default_rng(0)
BLACK = PictureValue([[0.0]])
VALUES: dict[str, Media] = {
    "grey": PictureValue(DRAW.integers(0, 256, (5, 7), np.uint8), caption="grey"),
    "colours": PictureValue(DRAW.integers(0, 256, (4, 3, 3), np.uint8)),
    "text": TextValue("To be,\n<or> not\u2009to be \N{PILE OF POO}"),
    "mono": SoundValue(DRAW.uniform(-1, 1, 100).astype(np.float32), 8000),
    "stereo": SoundValue(DRAW.uniform(-1, 1, (100, 2)), 44_100),
    "table": TableValue(["class", "0"], [["0", 3], ["1", None], ["2", 0.5]], heat=True),
    "histogram": HistogramValue.count(DRAW.normal(size=100), bins=7),
}
by_value = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)


def entry_of(value: Media) -> tuple[MediaEntry, bytes]:
    about, data = describe_media("a", value)
    return MediaEntry("trainer", "a", 1, 0, 0.5, 0, **about), data


# -- bytes -------------------------------------------------------------------------------------------------------------
@by_value
def test_bytes_give_the_same_value_again(value: Media) -> None:
    entry, data = entry_of(value)
    again = decode_media(entry, data)
    assert again.encode() == data
    assert (again.caption, again.facts(), type(again)) == (value.caption, value.facts(), type(value))
    assert json.loads(json.dumps(entry.facts)) == value.facts()


@by_value
def test_other_bytes_are_refused_with_a_sentence(value: Media) -> None:
    entry, data = entry_of(value)
    with pytest.raises(SigmaCheckpointError, match=r"^media/.*: was changed since it was published\. Restore"):
        decode_media(entry, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SigmaCheckpointError, match=r"^media/.*: is missing\. Restore"):
        decode_media(entry, None)


@pytest.mark.parametrize("kind", ["picture", "text", "sound", "table", "histogram"])
@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 80, b"[" * 100_000, b"{}", b"RIFF\x00\x00\x00\x00WAVE", b"\x89PNG\r\n\x1a\n"]
)
def test_bytes_of_no_value_are_refused_whatever_they_are(kind: str, data: bytes) -> None:
    entry = evolve(entry_of(TextValue(""))[0], kind=kind, key=f"{describe_key(data)}.png")
    if kind == "text" and data != b"\xff" * 80 and not data.startswith(b"\x89"):
        assert isinstance(decode_media(entry, data), TextValue)
    else:
        with pytest.raises(SigmaCheckpointError, match=f"is no {kind}"):
            decode_media(entry, data)


def describe_key(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def test_other_libraries_read_the_bytes() -> None:
    images = pytest.importorskip("PIL.Image")
    for name in ("grey", "colours"):
        value: Any = VALUES[name]
        read = np.asarray(images.open(io.BytesIO(value.encode())))
        assert read.reshape(value.pixels.shape).tolist() == value.pixels.tolist()
    sound: Any = VALUES["stereo"]
    with wave.open(io.BytesIO(sound.encode())) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes(), file.getsampwidth()) == (2, 44_100, 100, 2)
        read = np.frombuffer(file.readframes(100), "<i2").reshape(100, 2)
    assert np.abs(read / 32767 - sound.samples).max() < 1 / 32767


def test_one_black_pixel_gives_the_reference_png() -> None:
    header = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55")
    assert encode_png(np.zeros((1, 1, 1), np.uint8))[:33] == header
    assert encode_png(np.zeros((1, 1, 1), np.uint8))[-12:] == bytes.fromhex("0000000049454e44ae426082")


def test_a_small_file_cannot_claim_a_large_picture() -> None:
    data = encode_png(np.zeros((1, 1, 1), np.uint8))
    with pytest.raises(ValueError, match="a picture of 1073741824 x 1 pixels"):
        decode_png(data[:16] + (1 << 30).to_bytes(4) + data[20:])
    for rows in (b"\x00", b"\x01\x00"):  # too few, or filtered
        packed = zlib.compress(rows)
        with pytest.raises(ValueError, match="rows of another size, or filtered ones"):
            decode_png(data[:33] + len(packed).to_bytes(4) + b"IDAT" + packed)
    bomb = zlib.compress(bytes(10_000_000))  # of which no more is unpacked than the picture has
    assert decode_png(data[:33] + len(bomb).to_bytes(4) + b"IDAT" + bomb).tolist() == [[[0]]]


def test_a_value_that_is_too_large_is_refused() -> None:
    with pytest.raises(
        SigmaConfigError, match=rf"^a: a text of 2,097,153 bytes is left out\. Publish a part of at most {MOST_BYTES:,}"
    ):
        describe_media("a", TextValue("x" * (MOST_BYTES + 1)))
    noise = PictureValue(DRAW.integers(0, 256, (2000, 1500, 3), np.uint8))
    with pytest.raises(SigmaConfigError, match="is left out"):
        describe_media("a", noise)
    assert describe_media("a", noise.fit())[0]["facts"] == {"width": 500, "height": 666}
    assert max(noise.fit().pixels.shape) <= SIDE


# -- what is accepted --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PictureValue(np.zeros(3)), r"PictureValue: has shape \(3,\)\. Pass \(height, width\)"),
        (lambda: PictureValue([[1.0, 0.5], [0.0]]), "its rows are not equally long"),
        (lambda: PictureValue(np.zeros((3, 4, 2))), r"has shape \(3, 4, 2\)"),
        (lambda: PictureValue(np.zeros((0, 4))), r"has shape \(0, 4\)"),
        (lambda: PictureValue(np.zeros((3, 40_000), np.uint8)), "at most 16,384 pixels along a side"),
        (lambda: PictureValue(np.zeros((3, 4), np.int64)), "has dtype int64. Pass uint8"),
        (lambda: PictureValue([[0.5, 1.5]]), r"floats must be from 0 to 1 \(got 0\.5 to 1\.5\)\. Let"),
        (lambda: PictureValue([[0.5, np.nan]]), "floats must be from 0 to 1"),
        (lambda: PictureValue.tile([]), r"needs pictures of one shape \(got none\)"),
        (lambda: PictureValue.tile([BLACK, BLACK.enlarge(2)]), r"\(got \(1, 1, 1\), \(2, 2, 1\)\)"),
        (lambda: TextValue(3), r"TextValue: must be a string \(got 3\)"),
        (lambda: SoundValue(np.zeros(4, np.int16), 8000), "has shape .* and dtype int16. Pass floats"),
        (lambda: SoundValue(np.zeros((4, 3)), 8000), r"has shape \(4, 3\)"),
        (lambda: SoundValue(np.zeros(0), 8000), r"has shape \(0,\)"),
        (lambda: SoundValue([0.0, 1.01], 8000), "samples must be from -1 to 1"),
        (lambda: SoundValue([0.0, np.nan], 8000), "samples must be from -1 to 1"),
        (lambda: SoundValue([0.0], 0), r"SoundValue\.rate: must be samples in a second, 1 to 192,000 \(got 0\)"),
        (lambda: SoundValue([0.0], 8000.0), r"SoundValue\.rate"),
        (lambda: TableValue(["a"], [[1], [1, 2]]), "row 1 has 2 cells, and there are 1 columns"),
        (lambda: TableValue(["a"], 5), r"rows must be a list of rows \(got 5\)"),
        (lambda: TableValue(["a"], [[b"1"]]), r"cells are numbers, texts or None \(got b'1'\)"),
        (lambda: HistogramValue([0, 1], [1, 2]), r"has edges \(2,\) and counts \(2,\)\. Pass one edge more"),
        (lambda: HistogramValue([0, 0, 1], [1, 2]), "edges must be finite, and ascend"),
        (lambda: HistogramValue([0, 1, np.inf], [1, 2]), "edges must be finite, and ascend"),
        (lambda: HistogramValue([0, 1, 2], [1, -2]), "counts must be finite, and at least 0"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused_with_a_sentence(make: Any, text: str) -> None:
    with pytest.raises(SigmaConfigError, match=text):
        make()


@pytest.mark.parametrize("values", [[1e20, 1e20], np.full(4, 3e16, np.float32), [0.0, 5e-324], [1.7e308, 1.7e308]])
def test_numbers_too_close_for_bins_are_in_one(values: Any) -> None:
    value = HistogramValue.count(values)
    assert value.counts.tolist() == [len(values)]
    assert value.edges[0] <= min(values) <= max(values) <= value.edges[-1]


def test_a_rate_of_numpy_is_one() -> None:
    assert SoundValue([0.0], np.int64(8000)).facts() == SoundValue([0.0], 8000).facts()


def test_a_value_does_not_change_with_what_it_was_made_of() -> None:
    pixels, edges = np.zeros((2, 2), np.uint8), np.arange(3.0)
    picture, histogram = PictureValue(pixels), HistogramValue(edges, [1, 2])
    pixels[:], edges[:] = 9, 9
    assert picture.pixels.max() == 0
    assert histogram.edges.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        picture.pixels[0, 0] = 1


def test_half_a_pair_of_surrogates_becomes_a_question_mark() -> None:
    assert TextValue("a\ud800b").text == "a?b"


# -- pictures of numbers -----------------------------------------------------------------------------------------------
def test_shades_span_minimum_to_maximum() -> None:
    assert PictureValue.shade([[-1.0, 0.0], [1.0, 3.0]]).pixels[..., 0].tolist() == [[0, 64], [128, 255]]
    assert PictureValue.shade(np.full((2, 2), 7.0)).pixels.tolist() == np.zeros((2, 2, 1)).tolist()
    assert PictureValue.shade(np.zeros((3, 4, 5))).enlarge(2).pixels.shape == (8, 10, 3)
    assert PictureValue.shade([[np.nan, 1.0, 3.0, np.inf]]).pixels.ravel().tolist() == [0, 0, 255, 0]
    assert PictureValue.shade([[-5.0, 0.5, 5.0]], 0, 1).pixels.ravel().tolist() == [0, 128, 255]


def test_signed_numbers_are_blue_below_zero_orange_above_and_white_at_zero() -> None:
    pixels = PictureValue.draw_signed([[-2.0, 0.0, 2.0, 1.0]]).pixels[0]
    assert pixels[:3].tolist() == [[47, 84, 200], [255, 255, 255], [189, 75, 0]]
    assert pixels[3].tolist() == [222, 165, 128]
    assert PictureValue.draw_signed([[0.0, np.nan]]).pixels.min() == 255


def test_tiles_are_a_pixel_apart_row_by_row() -> None:
    ones = [PictureValue(np.full((2, 3), shade, np.uint8)) for shade in (10, 20, 30, 40, 50)]
    page = PictureValue.tile(ones, columns=3).pixels[..., 0]
    assert page.shape == (5, 11)
    assert page[:2, 3].tolist() == page[2, :2].tolist() == [255, 255]
    assert (page[0, 0], page[0, 4], page[0, 8], page[3, 0], page[3, 4], page[3, 8]) == (10, 20, 30, 40, 50, 255)
    assert PictureValue.tile(ones).pixels.shape == (5, 11, 1)


def test_a_fitted_picture_has_the_means_of_squares() -> None:
    picture = PictureValue(np.arange(25, dtype=np.uint8).reshape(5, 5))
    assert picture.fit(3).pixels[..., 0].tolist() == [[3, 5], [13, 15]]
    assert picture.fit(5) is picture


# -- drawings ----------------------------------------------------------------------------------------------------------
@by_value
def test_a_notebook_shows_a_value_with_its_caption_and_nothing_from_elsewhere(value: Media) -> None:
    html = evolve(value, caption="<script>")._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "http" not in html


def test_a_text_keeps_its_lines_and_is_never_html() -> None:
    assert TextValue("a\n<b>").html() == '<pre style="white-space:pre-wrap">a\n&lt;b&gt;</pre>'
