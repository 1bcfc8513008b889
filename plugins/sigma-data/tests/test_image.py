from __future__ import annotations

import io
import re
import struct
import sys
import zlib

import numpy as np
import pytest

from sigma_data import File, ImageReader
from sigma_kernel import SigmaPluginError

Image = pytest.importorskip("PIL.Image")
GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
COLOURED = np.arange(36, dtype=np.uint8).reshape(3, 4, 3) * 7


def packed(pixels, kind="PNG", **options):
    """Return an image as encoded by Pillow; ``pixels`` are an array, or one of Pillow's images."""
    stream = io.BytesIO()
    image = pixels if hasattr(pixels, "save") else Image.fromarray(pixels)
    image.save(stream, kind, **options)
    return stream.getvalue()


def png(width, height, *chunks):
    """Return a PNG written by hand (PNG specification, section 5), which may declare any size."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), *chunks, (b"IEND", b"")]
    framed = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


@pytest.fixture
def read(held):
    return lambda content, **settings: ImageReader(**settings).read(held(content))["values"]


def test_a_png_has_the_pixels_that_it_was_written_from(read):
    assert np.array_equal(read(packed(GREY)), GREY[None])
    assert np.array_equal(read(packed(COLOURED)), COLOURED[None])
    lines = b"".join(b"\0" + bytes(row) for row in GREY.tolist())
    assert np.array_equal(read(png(4, 3, (b"IDAT", zlib.compress(lines)))), GREY[None])


def test_a_jpeg_has_the_pixels_that_pillow_decodes(read):
    smooth = np.linspace(0, 255, 16 * 16).astype(np.uint8).reshape(16, 16)
    found = read(packed(smooth, "JPEG", quality=100))
    assert found.shape == (1, 16, 16)
    assert np.abs(found[0].astype(int) - smooth).max() <= 3


def test_colours_become_grey_by_luminance_and_grey_becomes_equal_rgb(read):
    red, green, blue = (COLOURED[..., i].astype(float) for i in range(3))
    luminance = 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R BT.601-7, section 2.5.1
    assert np.abs(read(packed(COLOURED), colours="grey")[0] - luminance).max() <= 1
    assert np.array_equal(read(packed(GREY), colours="rgb")[0], np.stack([GREY] * 3, axis=-1))


def test_black_and_white_and_palette_images_are_decoded(read):
    two = Image.fromarray((GREY > 100).astype(np.uint8) * 255).convert("1")
    assert np.array_equal(read(packed(two))[0], (GREY > 100) * 255)
    palette = Image.fromarray(COLOURED).quantize(256)
    assert read(packed(palette)).shape == (1, 3, 4, 3)


def test_the_exif_orientation_is_applied(read):
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees: EXIF 2.3, table 4, tag 274
    assert read(packed(GREY, exif=exif)).shape == (1, 4, 3)


def test_an_opaque_alpha_is_dropped_and_a_transparent_one_refused(read, told):
    alpha = np.full((3, 4, 1), 255, np.uint8)
    assert np.array_equal(read(packed(np.concatenate([COLOURED, alpha], axis=-1)))[0], COLOURED)
    alpha[1, 1] = 254
    assert "held: is transparent in places" in told(read, packed(np.concatenate([COLOURED, alpha], axis=-1)))


def test_pixels_that_are_not_bytes_are_refused(read, told):
    assert "holds I;16 pixels. Save it with 8 bits" in told(read, packed(GREY.astype(np.uint16) * 256))
    assert "holds CMYK pixels" in told(read, packed(Image.fromarray(COLOURED).convert("CMYK"), "JPEG"))


@pytest.mark.parametrize("side", [5_000, 12_000, 60_000, 2**31 - 1])
def test_an_image_that_declares_a_huge_size_is_refused_before_decoding(read, told, side):
    found = told(read, png(side, side, (b"IDAT", zlib.compress(b"\0" * 1000))))
    assert re.match(r"held: is (too large an image: .*pixels|no PNG)", found)


def test_the_limit_on_pixels_can_be_set(read, told):
    assert "4 x 3 pixels. At most 11 pixels" in told(lambda: read(packed(GREY), largest=11))
    assert read(packed(GREY), largest=12).shape == (1, 3, 4)


def test_data_that_is_not_an_image_is_refused(read, told):
    for content in (b"", b"words", b"\x89PNG\r\n\x1a\n", packed(GREY, "GIF"), packed(GREY, "BMP"), png(4, 3)):
        assert told(read, content).startswith("held: not a PNG or JPEG image, or damaged"), content


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_damaged_image_is_either_read_or_a_data_error(read, told, kind):
    whole = packed(np.random.default_rng(0).integers(0, 256, (20, 20, 3), np.uint8), kind)
    spoiled = [whole[:cut] for cut in range(0, len(whole), 29)]
    for place in range(0, len(whole), 7):
        spoiled.append(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
    sizes = []
    for content in spoiled:
        said = told(lambda content: sizes.append(read(content).shape[:1]), content)
        assert said.startswith("held: ")
    assert set(sizes) <= {(1,)}


def test_the_error_without_pillow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(packed(GREY))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(SigmaPluginError, match=r"pip install pillow"):
        ImageReader().read(File(tmp_path / "a.png"))
