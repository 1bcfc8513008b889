"""Read PNG and JPEG images."""

from __future__ import annotations

import struct
import warnings
import zlib
from importlib import import_module
from typing import Any, Literal

import numpy as np
from attrs import field, frozen

from sigma_kernel import Reader, SigmaDataError, SigmaPluginError, Source
from sigma_kernel.settings import ge, in_

FORMATS = ("PNG", "JPEG")
GREY, COLOURED = ("1", "L", "LA"), ("P", "PA", "RGB", "RGBA")  # Pillow's modes, with 8 bits a channel
# raised by Pillow for damaged or malicious files
BROKEN = (OSError, SyntaxError, ValueError, TypeError, EOFError, LookupError, OverflowError, struct.error, zlib.error)


@frozen
class ImageReader(Reader):
    """Read a PNG or JPEG file as bytes, ``values``, of one row: ``(1, height, width)`` or ``(1, height, width, 3)``.

    The EXIF orientation is applied. Raises SigmaDataError for more than ``largest`` pixels (before decoding),
    transparency, other than 8 bits per channel, and damaged files; SigmaPluginError without Pillow, which
    ``sigma-data[images]`` installs.

    Args:
        colours: Colours to convert to: ``grey`` (luminance of ITU-R 601), ``rgb``, or the image's own.
        largest: Most pixels of an image, checked before it is decoded.
    """

    colours: Literal["any", "grey", "rgb"] = field(default="any", validator=in_(("any", "grey", "rgb")))
    largest: int = field(default=1 << 24, validator=ge(1))

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return ``{"values": array}``."""
        pillow, turning = _pillow("PIL.Image"), _pillow("PIL.ImageOps")
        with source.open() as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large or odd images: they are checked here
            try:
                with pillow.open(stream, formats=FORMATS) as image:
                    self._check(image, source.name)
                    return {"values": np.array(self._convert_mode(turning.exif_transpose(image), source.name))[None]}
            except (pillow.UnidentifiedImageError, *BROKEN) as error:
                raise SigmaDataError(f"{source.name}: not a PNG or JPEG image, or damaged: {error!r:.100}.") from error
            except pillow.DecompressionBombError as error:
                raise self._too_large(source.name, str(error)) from None

    def _check(self, image: Any, name: str) -> None:
        width, height = image.size
        if width * height > self.largest:
            raise self._too_large(name, f"{width} x {height} pixels")
        if image.mode not in (*GREY, *COLOURED):
            raise SigmaDataError(f"{name}: holds {image.mode} pixels. Save it with 8 bits a channel, grey or RGB.")

    def _convert_mode(self, image: Any, name: str) -> Any:
        if image.has_transparency_data and image.convert("RGBA").getchannel("A").getextrema()[0] < 255:
            raise SigmaDataError(f"{name}: is transparent in places. Put it on a background first.")
        grey = self.colours == "grey" or (self.colours == "any" and image.mode in GREY)
        return image.convert("L" if grey else "RGB")

    def _too_large(self, name: str, what: str) -> SigmaDataError:
        return SigmaDataError(f"{name}: is too large an image: {what}. At most {self.largest:,} pixels are unpacked.")


def _pillow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise SigmaPluginError(
            "reader 'image': images need Pillow. Install it: python -m pip install pillow"
        ) from error
