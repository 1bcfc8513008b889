"""Decode pictures in blocks: in memory, or once into a cache of memory-mapped files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
from attrs import frozen

from sigma_data.pictures.cache import PictureCache
from sigma_data.pictures.decoding import PictureForm, UnreadablePictureError, pillow, without_warnings
from sigma_data.pictures.folder import Picture
from sigma_data.pictures.opening import OpenPicture, open_place
from sigma_data.pictures.progress import DecodingProgress, report
from sigma_data.threads import count_processors

PREPARED = 1 << 28  # most bytes of the pictures of a block, once they are floats of 32 bits


@frozen(eq=False)
class PictureBlock:
    """The pictures of a block that could be decoded, their places among those listed, and what is wrong with others."""

    pixels: np.ndarray
    places: np.ndarray
    faults: Mapping[str, str]  # by path


def list_faults(blocks: Sequence[PictureBlock]) -> dict[str, str]:
    """Return what is wrong with pictures of some blocks, by path."""
    return {path: fault for block in blocks for path, fault in block.faults.items()}


def deal(rows: np.ndarray, form: PictureForm) -> list[np.ndarray]:
    """Return rows dealt to as few blocks as can hold them, like cards, so that each has its share of every folder."""
    most = max(1, PREPARED // (4 * prod(form.shape)))
    count = -(-len(rows) // most)
    return [rows[start::count] for start in range(count)]


@frozen
class Decoding:
    """How the pictures of a folder are decoded.

    Those that need more than ``memory`` bytes are kept in the ``cache``. ``open_all`` opens others than files.
    """

    root: Path
    form: PictureForm
    memory: int
    cache: Path | None
    threads: int | None
    open_all: Callable[[], AbstractContextManager[OpenPicture]] | None = None

    def decode_all(self, parts: Sequence[Sequence[Picture]]) -> list[PictureBlock]:
        """Return the blocks of pictures; raises SigmaDataError for one that changes while it is read."""
        total = sum(map(len, parts))
        progress, size = DecodingProgress(str(self.root), total), total * prod(self.form.shape)
        cache = PictureCache.in_folder(self.cache, self.root, self.form) if size > self.memory else None
        if cache is not None and any(cache.read(part) is None for part in parts):
            report(f"{self.root}: {size / 1e6:,.0f} MB of decoded pictures are written to {cache.folder}, once.")
        pillow()
        threads = self.threads or count_processors()
        opening = open_place(self.root) if self.open_all is None else self.open_all()
        with without_warnings(), opening as place, ThreadPoolExecutor(threads, "sigma-pictures") as pool:
            return [self._decode_block(place, part, pool, progress, cache) for part in parts]

    def _decode_block(
        self,
        open_picture: OpenPicture,
        pictures: Sequence[Picture],
        pool: ThreadPoolExecutor,
        progress: DecodingProgress,
        cache: PictureCache | None,
    ) -> PictureBlock:
        """Return the block of some pictures, from the cache if it is there."""
        cached = None if cache is None else cache.read(pictures)
        if cached is not None and not self._is_any_repaired(open_picture, pictures, cached[1]):
            progress.advance(len(pictures))
            return _to_block(*cached, pictures)
        pixels = np.empty((len(pictures), *self.form.shape), np.uint8)
        faults = dict[str, str]()
        decoded = pool.map(partial(self._decode, open_picture, pixels), range(len(pictures)), pictures)
        for picture, fault in zip(pictures, decoded, strict=True):
            faults |= {picture.path: fault} if fault else {}
            progress.advance()
        if faults:
            pixels = pixels[[picture.path not in faults for picture in pictures]]
        if cache is not None:
            cache.write(pictures, pixels, faults)
            pixels, faults = cache.read(pictures) or (pixels, faults)
        return _to_block(pixels, faults, pictures)

    def _is_any_repaired(
        self, open_picture: OpenPicture, pictures: Sequence[Picture], faults: Mapping[str, str]
    ) -> bool:
        """Return whether a picture can be decoded that could not be before, as when it may be read by now."""
        pixels, broken = np.empty((1, *self.form.shape), np.uint8), (p for p in pictures if p.path in faults)
        return not all(self._decode(open_picture, pixels, 0, picture) for picture in broken)

    def _decode(self, open_picture: OpenPicture, pixels: np.ndarray, row: int, picture: Picture) -> str:
        """Decode a picture to a row; return what is wrong with it, if anything is."""
        fault = ""
        try:
            with open_picture(picture) as stream:
                try:
                    pixels[row] = self.form.decode(stream)
                except UnreadablePictureError as error:
                    fault = str(error)
        except (OSError, ValueError) as error:  # ValueError for a path that holds a NUL
            return f"cannot be read: {getattr(error, 'strerror', None) or error}"
        return fault


def _to_block(pixels: np.ndarray, faults: Mapping[str, str], pictures: Sequence[Picture]) -> PictureBlock:
    places = np.flatnonzero([picture.path not in faults for picture in pictures])
    return PictureBlock(pixels, places, faults)
