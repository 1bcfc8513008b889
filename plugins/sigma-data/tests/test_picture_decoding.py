"""Pictures of all formats, modes and sizes are decoded to the pixels that a calculation by hand gives."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest
from attrs import evolve

from sigma_data.pictures import decoding
from sigma_data.pictures.decoding import PictureForm, UnreadablePictureError
from sigma_kernel import SigmaPluginError

Image = pytest.importorskip("PIL.Image")
JpegImageFile = pytest.importorskip("PIL.JpegImagePlugin").JpegImageFile


def encode(pixels, kind="PNG", **options):
    """Return a picture as a file of some format; ``pixels`` are an array, or one of Pillow's images."""
    stream = io.BytesIO()
    image = pixels if hasattr(pixels, "save") else Image.fromarray(pixels)
    image.save(stream, kind, **options)
    return stream.getvalue()


def noise(height, width, channels=3, seed=0):
    """Return random pixels; without a last axis for no channels."""
    shape = (height, width, channels) if channels else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


GREY, COLOURED = noise(6, 8, 0), noise(6, 8)
RGB = PictureForm(6, 8, "rgb", "crop", 255, 1 << 20)
LUMINANCE = (0.299, 0.587, 0.114)  # ITU-R BT.601-7, section 2.5.1


def decode(content, form=RGB, **settings):
    return evolve(form, **settings).decode(io.BytesIO(content))


def refusal(content, form=RGB, **settings):
    with pytest.raises(UnreadablePictureError) as caught:
        decode(content, form, **settings)
    return str(caught.value)


def channels_first(pixels):
    return np.moveaxis(pixels, -1, 0)


# -- formats and modes -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "options"),
    [("PNG", {}), ("BMP", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}), ("WEBP", {"lossless": True})],
)
def test_a_picture_without_losses_has_the_pixels_that_it_was_written_from(kind, options):
    pixels = decode(encode(COLOURED, kind, **options))
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels, channels_first(COLOURED))
    assert np.array_equal(decode(encode(GREY, kind, **options)), np.stack([GREY] * 3))


@pytest.mark.parametrize(
    ("kind", "options"), [("JPEG", {"quality": 100, "subsampling": 0}), ("WEBP", {"quality": 100})]
)
def test_a_picture_with_losses_is_close_to_what_it_was_written_from(kind, options):
    smooth = np.linspace(0, 255, 16 * 16 * 3).reshape(16, 16, 3).astype(np.uint8)
    pixels = decode(encode(smooth, kind, **options), height=16, width=16)
    assert np.abs(pixels.astype(int) - channels_first(smooth)).max() <= 6


def test_the_first_frame_of_an_animation_is_read():
    frames = [Image.fromarray(np.full((6, 8), value, np.uint8)) for value in (40, 200)]
    for kind, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("TIFF", {}), ("PNG", {})):
        content = encode(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        assert Image.open(io.BytesIO(content)).n_frames == 2, kind
        assert (decode(content) == 40).all(), kind


def test_colours_become_grey_by_luminance():
    pixels = decode(encode(COLOURED), colours="grey")
    assert pixels.shape == (1, 6, 8)
    assert np.abs(pixels[0] - COLOURED @ np.array(LUMINANCE)).max() <= 1
    assert np.array_equal(decode(encode(GREY), colours="grey"), GREY[None])


def test_the_luma_of_a_jpeg_is_its_grey():
    smooth = np.linspace(0, 255, 16 * 16 * 3).reshape(16, 16, 3).astype(np.uint8)
    pixels = decode(encode(smooth, "JPEG", quality=100), height=16, width=16, colours="grey")
    assert np.abs(pixels[0] - smooth @ np.array(LUMINANCE)).max() <= 3


def test_sixteen_bits_are_rounded_so_that_white_stays_white():
    deep = np.linspace(0, 65535, 48).reshape(6, 8).astype(np.uint16)
    deep[0, :2] = 128, 129  # half of 257, from which on it is rounded up
    expected = np.floor(deep / 257 + 0.5)
    assert [decode(encode(deep), colours="grey")[0, 0, :2].tolist()] == [[0, 1]]
    for content in (
        encode(deep),
        encode(deep, "TIFF"),
        encode(Image.frombytes("I;16B", (8, 6), deep.astype(">u2").tobytes()), "TIFF"),
    ):
        assert np.array_equal(decode(content, colours="grey")[0], expected)
        assert np.array_equal(decode(content)[2], expected)
    assert expected.max() == 255


def test_palettes_and_black_and_white_are_decoded():
    palette = Image.fromarray(COLOURED).quantize(48)
    expected = channels_first(np.asarray(palette.convert("RGB")))
    for kind in ("PNG", "GIF", "BMP", "TIFF"):
        assert np.array_equal(decode(encode(palette, kind)), expected), kind
    two = Image.fromarray(np.where(GREY > 100, 255, 0).astype(np.uint8)).convert("1")
    assert np.array_equal(decode(encode(two), colours="grey")[0], np.where(GREY > 100, 255, 0))


def test_transparent_pixels_are_blended_with_the_background():
    alpha = noise(6, 8, 1, seed=1)
    content = encode(np.concatenate([COLOURED, alpha], axis=-1))
    share = channels_first(alpha / 255.0)
    for background in (255, 0, 100):
        expected = channels_first(COLOURED) * share + background * (1 - share)
        assert np.abs(decode(content, background=background) - expected).max() <= 1
    grey = encode(np.stack([GREY, alpha[..., 0]], axis=-1))
    assert np.abs(decode(grey, colours="grey") - (GREY * share + 255 * (1 - share))).max() <= 1


def test_a_transparent_colour_of_a_palette_is_the_background():
    palette = Image.fromarray(np.repeat(np.array([[0, 1, 2, 3]], np.uint8), 6, 0), "P")
    palette.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120])
    for kind in ("PNG", "GIF"):
        pixels = decode(encode(palette, kind, transparency=1), width=4)
        assert pixels[:, 0].T.tolist() == [[10, 20, 30], [255, 255, 255], [70, 80, 90], [100, 110, 120]], kind


def test_cmyk_becomes_rgb():
    ink = noise(6, 8, 4, seed=2)
    light = (255.0 - ink[..., :3]) * (255 - ink[..., 3:]) / 255
    pixels = decode(encode(Image.fromarray(ink, "CMYK"), "TIFF"))
    assert np.abs(pixels - channels_first(light)).max() <= 1
    white = Image.new("CMYK", (16, 16), (0, 0, 0, 0))
    assert (decode(encode(white, "JPEG"), height=16, width=16) >= 253).all()


def test_pixels_of_32_bits_are_refused():
    for pixels in (GREY.astype(np.float32), GREY.astype(np.int32)):
        assert "Save it with 8 or 16 bits" in refusal(encode(pixels, "TIFF"))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "turn"),
    [  # EXIF 2.3, table 4, tag 274: where row 0 and column 0 are seen
        (1, lambda x: x), (2, lambda x: x[:, ::-1]), (3, lambda x: x[::-1, ::-1]), (4, lambda x: x[::-1]),
        (5, lambda x: x.swapaxes(0, 1)), (6, lambda x: x[::-1].swapaxes(0, 1)),
        (7, lambda x: x[::-1, ::-1].swapaxes(0, 1)), (8, lambda x: x[:, ::-1].swapaxes(0, 1)),
    ],
)  # fmt: skip
def test_the_exif_orientation_is_applied(kind, orientation, turn):
    exif = Image.Exif()
    exif[0x0112] = orientation
    quarters = np.kron(np.array([[0, 80], [160, 250]], np.uint8), np.ones((16, 24), np.uint8))
    options = {"JPEG": {"quality": 100}, "WEBP": {"lossless": True}}.get(kind, {})
    upright = turn(quarters)
    height, width = upright.shape
    pixels = decode(encode(quarters, kind, exif=exif, **options), height=height, width=width, colours="grey")
    assert np.abs(pixels[0].astype(int) - upright).max() <= (6 if kind == "JPEG" else 0)
    small = decode(encode(quarters, kind, exif=exif, **options), height=2, width=2, colours="grey", fit="stretch")
    assert np.abs(small[0] - turn(np.array([[0.0, 80], [160, 250]]))).max() <= 45  # the filter reaches over edges


# -- sizes -------------------------------------------------------------------------------------------------------------
def triangle(values, count, begin, end):
    """Return an axis of values resized by a triangle filter, in floats: weights of centres within the support."""
    step = (end - begin) / count
    support = max(1.0, step)
    centres = begin + (np.arange(count) + 0.5) * step
    places = np.arange(len(values)) + 0.5
    weights = np.maximum(0.0, 1 - np.abs(places - centres[:, None]) / support)
    return (weights / weights.sum(axis=1, keepdims=True)) @ values


def resized(pixels, height, width, box):
    left, top, right, bottom = box
    rows = triangle(pixels.astype(float), height, top, bottom)
    return triangle(rows.T, width, left, right).T


@pytest.mark.parametrize(("height", "width"), [(5, 5), (12, 7), (30, 40), (64, 64)])
@pytest.mark.parametrize(("high", "wide"), [(30, 40), (40, 30), (33, 33)])
def test_each_fit_resizes_as_a_triangle_filter_does(height, width, high, wide):
    pixels = noise(high, wide, 0, seed=3)
    form = evolve(RGB, height=height, width=width, colours="grey", background=9)
    stretched = decode(encode(pixels), form, fit="stretch")[0]
    assert np.abs(stretched - resized(pixels, height, width, (0, 0, wide, high))).max() < 1.51
    ratio = max(height / high, width / wide)
    half_wide, half_high = width / ratio / 2, height / ratio / 2
    box = wide / 2 - half_wide, high / 2 - half_high, wide / 2 + half_wide, high / 2 + half_high
    cropped = decode(encode(pixels), form, fit="crop")[0]
    assert np.abs(cropped - resized(pixels, height, width, box)).max() < 1.51
    ratio = min(height / high, width / wide)
    inner_high, inner_wide = max(1, round(high * ratio)), max(1, round(wide * ratio))
    expected = np.full((height, width), 9.0)
    top, left = (height - inner_high) // 2, (width - inner_wide) // 2
    inner = resized(pixels, inner_high, inner_wide, (0, 0, wide, high))
    expected[top : top + inner_high, left : left + inner_wide] = inner
    assert np.abs(decode(encode(pixels), form, fit="pad")[0] - expected).max() < 1.51


def test_a_picture_of_the_wanted_size_is_not_resampled():
    for fit in ("crop", "pad", "stretch"):
        assert np.array_equal(decode(encode(COLOURED), fit=fit), channels_first(COLOURED))


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_a_stripe_of_one_pixel_fits_any_size(fit):
    assert decode(encode(noise(1, 500)), fit=fit).shape == (3, 6, 8)
    assert decode(encode(noise(500, 1)), fit=fit).shape == (3, 6, 8)


@pytest.fixture
def loaded(monkeypatch):
    """Return a list to which the size of each JPEG is added when it is decoded."""
    sizes, load = [], JpegImageFile.load

    def observe(image):
        sizes.append(image.size)
        return load(image)

    monkeypatch.setattr(JpegImageFile, "load", observe)
    return sizes


@pytest.mark.parametrize(("width", "size"), [(48, (150, 100)), (96, (300, 200)), (400, (1200, 800))])
def test_a_large_jpeg_is_decoded_at_a_fraction_of_its_size_and_looks_the_same(loaded, width, size):
    smooth = np.add.outer(np.sin(np.arange(800) / 60), np.cos(np.arange(1200) / 90))
    content = encode(((smooth + 2) * 60).astype(np.uint8), "JPEG", quality=95)
    pixels = decode(content, height=width * 2 // 3, width=width, colours="grey")
    assert loaded[0] == size  # twice the size wanted, or more
    whole = Image.open(io.BytesIO(content)).resize((width, width * 2 // 3), Image.Resampling.BILINEAR)
    assert np.abs(pixels[0].astype(int) - np.asarray(whole)).max() <= 3


@pytest.mark.parametrize(("fit", "size"), [("stretch", (800, 100)), ("crop", (800, 100)), ("pad", (100, 13))])
def test_the_fraction_is_that_of_the_picture_as_it_is_turned(loaded, fit, size):
    exif = Image.Exif()
    exif[0x0112] = 6
    content = encode(noise(100, 800, 0), "JPEG", exif=exif)
    assert decode(content, height=8, width=64, fit=fit, colours="grey").shape == (1, 8, 64)
    assert loaded[0] == size


def test_big_pictures_are_decoded_one_at_a_time_and_others_together(monkeypatch):
    monkeypatch.setattr(decoding, "BIG", 48)
    together, most, lock = [], {}, Lock()

    def observe(form, image, pil):
        with lock:
            together.append(image.size)
            most[image.size] = max(most.get(image.size, 0), len(together))
        time.sleep(0.02)
        with lock:
            together.remove(image.size)
        return np.zeros(form.shape, np.uint8)

    monkeypatch.setattr(PictureForm, "_to_array", observe)
    with ThreadPoolExecutor(4) as pool:
        for pixels in (noise(7, 7), COLOURED):
            list(pool.map(decode, [encode(pixels)] * 8))
    assert most == {(7, 7): 1, (8, 6): 4}


# -- bad files ---------------------------------------------------------------------------------------------------------
def png(width, height, *chunks):
    """Return a PNG written by hand (PNG specification, section 5), which may declare any size."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), *chunks, (b"IEND", b"")]
    framed = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


@pytest.mark.filterwarnings("ignore::Warning:PIL")
@pytest.mark.parametrize("side", [1025, 12_000, 60_000, 2**31 - 1])
def test_a_picture_that_declares_too_many_pixels_is_refused_before_it_is_decoded(side):
    assert refusal(png(side, side, (b"IDAT", zlib.compress(b"\0" * 1000)))).startswith(
        ("is too large", "is no picture")
    )


def test_the_limit_of_pixels_can_be_set():
    assert refusal(encode(COLOURED), largest=47) == "is too large: 8 x 6, more than 47 pixels"
    assert decode(encode(COLOURED), largest=48).shape == (3, 6, 8)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def with_size(kind, place, layout, *sides):
    """Return a small picture whose header declares another size."""
    content = bytearray(encode(np.zeros((16, 16), np.uint8), kind))
    at = place if isinstance(place, int) else content.index(place) + len(place)
    content[at : at + struct.calcsize(layout)] = struct.pack(layout, *sides)
    return bytes(content)


def bombs():
    """Return files that declare or hold far more than they should, by name."""
    zeros, row = zlib.compress(bytes(1 << 26), 9), chunk(b"IDAT", zlib.compress(bytes(20)))
    webp = bytearray(encode(np.zeros((16, 16), np.uint8), "WEBP", exif=bytes(range(40))))
    at = webp.index(b"VP8X") + 12
    webp[at : at + 6] = b"\xff\x3f\x00" * 2
    tiff = with_size("TIFF", struct.pack("<HHI", 256, 4, 1), "<I", 60_000)
    at = tiff.index(struct.pack("<HHI", 257, 4, 1)) + 8
    return {
        "png": png(30_000, 30_000, (b"IDAT", zeros)),
        "jpeg": with_size("JPEG", b"\xff\xc0\x00\x0b\x08", ">HH", 65_000, 65_000),
        "bmp": with_size("BMP", 18, "<ii", 30_000, 30_000),
        "gif": with_size("GIF", 6, "<HH", 65_535, 65_535),
        "tiff": tiff[:at] + struct.pack("<I", 60_000) + tiff[at + 4 :],
        "webp": bytes(webp),
        "text": png(4, 4, *[(b"zTXt", b"a\0\0" + zeros)] * 20)[:-12] + row,
        "profile": png(4, 4, (b"iCCP", b"a\0\0" + zeros))[:-12] + row,
        "pixels": png(4, 4, (b"IDAT", zeros)),
    }


MEASURED = """
import io, resource, sys, time
from pathlib import Path
from sigma_data.pictures import decoding
from sigma_data.pictures.decoding import PictureForm, UnreadablePictureError, pillow, without_warnings
form = PictureForm(4, 4, "rgb", "crop", 255, 1 << 26)
pillow()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in map(Path, sys.argv[1:]):
    began = time.monotonic()
    with without_warnings():
        try:
            said = str(form.decode(io.BytesIO(path.read_bytes())).shape)
        except UnreadablePictureError as error:
            said = str(error)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(path.name, said, time.monotonic() - began, grown, sep="|")
"""


def test_bombs_of_every_format_end_in_little_time_and_memory(tmp_path):
    paths = [tmp_path / name for name in bombs()]
    for path, content in zip(paths, bombs().values(), strict=True):
        path.write_bytes(content)
    command = [sys.executable, "-W", "error", "-c", MEASURED, *map(str, paths)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split("|")[0] for line in lines] == [path.name for path in paths]
    for name, said, seconds, grown in (line.split("|") for line in lines):
        assert said == "(3, 4, 4)" if name == "pixels" else said.startswith("is "), (name, said)
        assert float(seconds) < 2, name
        assert int(grown) < 64, name


def test_files_that_are_no_pictures_are_refused():
    for content in (b"", b"words", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4", encode(GREY, "PPM"), encode(GREY, "ICO")):
        assert refusal(content).startswith("is no picture, or damaged: "), content


def spoiled(whole, rng):
    """Return a file with a cut, a flipped byte, a piece doubled, or bytes of noise."""
    at, end = sorted(rng.integers(0, len(whole), 2).tolist())
    way = int(rng.integers(4))
    if way == 0:
        return whole[:at]
    if way == 1:
        return whole[:at] + bytes([int(rng.integers(256))]) + whole[at + 1 :]
    return whole[:end] + whole[at:] if way == 2 else whole[:at] + rng.bytes(min(end - at, 64)) + whole[end:]


@pytest.mark.filterwarnings("ignore")  # Pillow warns of damaged files
def test_200_spoiled_files_are_either_read_or_refused():
    rng = np.random.default_rng(28)
    wholes = [
        encode(noise(20, 24), kind, **options)
        for kind, options in [
            ("PNG", {}), ("JPEG", {}), ("GIF", {}), ("BMP", {}), ("TIFF", {"compression": "tiff_lzw"}), ("WEBP", {}),
            ("JPEG", {"progressive": True}), ("TIFF", {}),
        ]
    ]  # fmt: skip
    ends = {"read": 0, "refused": 0}
    for number in range(200):
        try:
            assert decode(spoiled(wholes[number % len(wholes)], rng)).shape == (3, 6, 8)
            ends["read"] += 1
        except UnreadablePictureError:
            ends["refused"] += 1
    assert min(ends.values()) > 20


def test_the_error_without_pillow_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(SigmaPluginError, match=r'pip install "sigma-data\[images\]"'):
        decode(encode(GREY))
