"""Decode pictures with Pillow to bytes of one shape, channels first."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from math import ceil
from threading import Lock
from types import SimpleNamespace
from typing import IO, Any, Literal

import numpy as np
from attrs import frozen

from sigma_data.readers.image import BROKEN
from sigma_kernel import SigmaPluginError

FORMATS = {  # in Pillow, with the ends of their files
    "PNG": (".png", ".apng"),
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "GIF": (".gif",),
    "BMP": (".bmp", ".dib"),
    "TIFF": (".tif", ".tiff"),
    "WEBP": (".webp",),
}
ENDS = tuple(end for ends in FORMATS.values() for end in ends)
PLUGINS = ("Bmp", "Gif", "Jpeg", "Png", "Tiff", "WebP")  # of Pillow, which imports them on first use, in any thread
FAULTS = (*BROKEN, ArithmeticError, AssertionError, AttributeError, MemoryError, RuntimeError)  # raised by Pillow
BIG = 1 << 22  # pixels from which on pictures are decoded one at a time, so that threads share the memory of one
SHARP = 2  # how many times larger than needed a JPEG is decoded, before it is resized
ORIENTATION = 0x0112  # EXIF 2.3, table 4
UPRIGHT = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # Pillow's transposition for each orientation

Fit = Literal["crop", "pad", "stretch"]
_big = Lock()


class UnreadablePictureError(Exception):
    """A picture that cannot be decoded; the message says why."""


@frozen
class PictureForm:
    """The form that every picture is brought to: ``(1, height, width)`` in grey, else ``(3, height, width)``, uint8.

    Colours become grey by the luminance of ITU-R 601, or by the luma of a JPEG. 16 bits are rounded to 8. Transparent
    pixels are blended with a background of equal channels. The EXIF orientation is applied. ``crop`` and ``pad`` keep
    the ratio of the sides. Pictures are resized by a triangle filter, as wide as needed to avoid aliasing.
    """

    height: int
    width: int
    colours: Literal["rgb", "grey"]
    fit: Fit
    background: int
    largest: int  # pixels of a file

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of a picture."""
        return 1 if self.colours == "grey" else 3, self.height, self.width

    def decode(self, stream: IO[bytes]) -> np.ndarray:
        """Return the picture in a file; raises UnreadablePictureError for one that is damaged, too large or unknown."""
        pil = pillow()
        try:
            with pil.Image.open(stream, formats=[*FORMATS]) as image:
                self._check_size(*image.size)
                self._shrink(image)
                with _big if image.width * image.height > BIG else nullcontext():
                    return self._to_array(image, pil)
        except pil.Image.DecompressionBombError:
            raise UnreadablePictureError(f"is too large: more than {self.largest:,} pixels") from None
        except pil.Unknown:
            raise UnreadablePictureError("is no picture, or damaged: its format is not recognised") from None
        except FAULTS as error:
            raise UnreadablePictureError(f"is no picture, or damaged: {error!r:.100}") from error

    def _check_size(self, width: int, height: int) -> None:
        if width * height > self.largest:
            raise UnreadablePictureError(f"is too large: {width} x {height}, more than {self.largest:,} pixels")

    def _shrink(self, image: Any) -> None:
        """Have a JPEG decoded at a half, a quarter or an eighth of its size, if that is large enough."""
        if image.format in ("JPEG", "MPO"):
            across = image.getexif().get(ORIENTATION) in (5, 6, 7, 8)
            size = (self.height, self.width) if across else (self.width, self.height)
            sides = [SHARP * side for side in self._scaled_size(image.size, size)]
            image.draft("L" if self.colours == "grey" else "RGB", sides)

    def _to_array(self, image: Any, pil: Any) -> np.ndarray:
        image.load()
        turn = UPRIGHT.get(image.getexif().get(ORIENTATION))
        image = _drop_transparency(_to_bytes(image, pil), pil, self.background)
        mode = "L" if self.colours == "grey" else "RGB"
        image = image if image.mode == mode else image.convert(mode)  # which would copy it
        image = self._resize(image if turn is None else image.transpose(turn), pil)
        bands = [image.tobytes("raw", band) for band in mode]
        return np.frombuffer(b"".join(bands), np.uint8).reshape(self.shape)

    def _resize(self, image: Any, pil: Any) -> Any:
        size, filtering = (self.width, self.height), pil.Image.Resampling.BILINEAR
        if image.size == size:
            return image
        if self.fit == "stretch":
            return image.resize(size, filtering)
        if self.fit == "crop":
            return image.resize(size, filtering, box=_centre(image.size, size))
        inner = image.resize(self._scaled_size(image.size, size), filtering)
        canvas = pil.Image.new(image.mode, size, (self.background,) * len(image.getbands()))
        canvas.paste(inner, ((self.width - inner.width) // 2, (self.height - inner.height) // 2))
        return canvas

    def _scaled_size(self, original: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
        """Return the width and height of the whole picture, once it is resized."""
        (width, height), (w, h) = original, size
        if self.fit == "stretch":
            return size
        if self.fit == "pad":
            factor = min(w / width, h / height)
            return min(w, max(1, round(width * factor))), min(h, max(1, round(height * factor)))
        factor = max(w / width, h / height)
        return ceil(width * factor), ceil(height * factor)


def _centre(original: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return the largest box of the ratio of a size, in the middle of a picture."""
    (width, height), (w, h) = original, size
    wide, high = (height * w / h, float(height)) if width * h >= height * w else (float(width), width * h / w)
    left, top = (width - wide) / 2, (height - high) / 2
    return left, top, min(float(width), left + wide), min(float(height), top + high)


def _to_bytes(image: Any, pil: Any) -> Any:
    """Return a picture with 8 bits a channel; 16 bits are rounded, so that 65535 becomes 255."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        values = np.asarray(image).astype(np.uint32)
        return pil.Image.fromarray(((values + 128) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise UnreadablePictureError(f"holds {image.mode} pixels. Save it with 8 or 16 bits a channel")
    return image


def _drop_transparency(image: Any, pil: Any, background: int) -> Any:
    """Return a picture without transparency, blended with a background."""
    if not image.has_transparency_data:
        return image
    image = image if image.mode == "RGBA" else image.convert("RGBA")
    canvas = pil.Image.new("RGB", image.size, (background,) * 3)
    canvas.paste(image, mask=image.getchannel("A"))
    return canvas


def pillow() -> SimpleNamespace:
    """Return Pillow with the plugins of all formats; raises SigmaPluginError if it is not installed."""
    try:
        for name in PLUGINS:
            import_module(f"PIL.{name}ImagePlugin")
        pil = import_module("PIL")
        return SimpleNamespace(
            Image=import_module("PIL.Image"), Unknown=pil.UnidentifiedImageError, version=pil.__version__
        )
    except ImportError as error:
        raise SigmaPluginError(
            'pictures need Pillow. Install it: python -m pip install "sigma-data[images]"'
        ) from error


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore what Pillow warns of, in all threads: large or odd files are reported as errors."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\b")
        yield
