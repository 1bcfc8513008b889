"""Look at picture files: size, format and colours of each, what is wrong with it, and a small copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from attrs import evolve, frozen

from sigma_data.pictures.decoding import (
    FAULTS,
    FORMATS,
    ORIENTATION,
    PictureForm,
    UnreadablePictureError,
    pillow,
    without_warnings,
)
from sigma_data.pictures.folder import Picture
from sigma_data.pictures.opening import OpenPicture, open_place
from sigma_data.pictures.progress import DecodingProgress
from sigma_data.threads import count_processors

SIDE = 32  # of the small copy
LARGEST = 1 << 26  # pixels of a file, as image_folder has it by default
COPY = PictureForm(SIDE, SIDE, "rgb", "crop", 255, LARGEST)
CHROMA = 6.0  # mean distance of channels, of 255, from which on a picture has colours; JPEGs of grey have some
DARK = 32  # values below which pixels are almost black; those of white are as near to 255
PLAIN = 0.4  # share of such pixels from which on there is a plain background
LYING = (5, 6, 7, 8)  # EXIF orientations of pictures that lie on a side


@frozen(eq=False)
class PictureFacts:
    """A picture file: width and height as it is shown, format, mode, and its middle as (3, SIDE, SIDE), uint8.

    ``fault`` says what is wrong with a file that cannot be used; the others are then empty.
    """

    path: str
    size: tuple[int, int] = (0, 0)
    format: str = ""
    mode: str = ""
    fault: str = ""
    copy: np.ndarray | None = None

    @property
    def is_coloured(self) -> bool:
        """Return whether the picture has colours."""
        return self.copy is not None and float(np.ptp(self.copy.astype(np.int16), axis=0).mean()) > CHROMA

    @property
    def is_plain(self) -> bool:
        """Return whether much of the picture is almost black or white, as in drawings, letters and signs."""
        if self.copy is None:
            return False
        grey = self.copy.mean(axis=0)
        return float(((grey < DARK) | (grey > 255 - DARK)).mean()) > PLAIN


def look_at_pictures(
    root: Path,
    pictures: Sequence[Picture],
    threads: int | None = None,
    open_all: Callable[[], AbstractContextManager[OpenPicture]] | None = None,
) -> list[PictureFacts]:
    """Return what picture files are, in their order; decodes all of each file, to a small copy.

    ``open_all`` opens others than files.
    """
    progress = DecodingProgress(str(root), len(pictures))
    pillow()
    facts = []
    count = threads or count_processors()
    opening = open_place(root) if open_all is None else open_all()
    with without_warnings(), opening as place, ThreadPoolExecutor(count, "sigma-pictures") as pool:
        for fact in pool.map(partial(look_at, place), pictures):
            facts.append(fact)
            progress.advance()
    return facts


def look_at(open_picture: OpenPicture, picture: Picture) -> PictureFacts:
    """Return what one file is."""
    nothing = PictureFacts(picture.path)
    try:
        with open_picture(picture) as stream:
            return evolve(_read_header(nothing, stream), copy=COPY.decode(stream))
    except UnreadablePictureError as error:
        return evolve(nothing, fault=str(error))
    except (OSError, ValueError) as error:  # ValueError for a path that holds a NUL
        return evolve(nothing, fault=f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _read_header(facts: PictureFacts, stream: IO[bytes]) -> PictureFacts:
    """Return the facts with what the header of a file says; go back to its start."""
    pil = pillow()
    try:
        with pil.Image.open(stream, formats=[*FORMATS]) as image:
            size = image.size[::-1] if image.getexif().get(ORIENTATION) in LYING else image.size
            return evolve(facts, size=size, format="JPEG" if image.format == "MPO" else image.format, mode=image.mode)
    except (pil.Image.DecompressionBombError, *FAULTS):  # decoding says what is wrong
        return facts
    finally:
        stream.seek(0)
