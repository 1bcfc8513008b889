"""A cache of decoded pictures: a memory-mapped .npy file for each block.

The name of a block is the sha256 of its pictures (folder, path, size and time of the last change), of their form and of
the version of Pillow, so that a changed picture is decoded again, with its block. Files are written under another name
and renamed: an interrupted preparation continues with the first block that is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import numpy as np
from attrs import astuple, frozen

from sigma_data.pictures.decoding import PictureForm, pillow
from sigma_data.pictures.folder import Picture
from sigma_kernel import SigmaDataError

VARIABLE = "SIGMA_CACHE"
VERSION = 1  # of what is decoded from a file


@frozen
class PictureCache:
    """The blocks of pictures of one folder, in one form."""

    folder: Path
    root: Path
    form: PictureForm

    @classmethod
    def in_folder(cls, folder: Path | None, root: Path, form: PictureForm) -> PictureCache:
        """Return the cache in a folder: by default ``pictures`` in ``$SIGMA_CACHE`` or the user's cache directory."""
        return cls(folder or default_folder() / "pictures", root, form)

    def read(self, pictures: Sequence[Picture]) -> tuple[np.ndarray, dict[str, str]] | None:
        """Return the pixels of a block, mapped to memory, and what is wrong with other pictures; None if not there."""
        path = self._path(pictures)
        with suppress(OSError, ValueError, EOFError):  # missing, or cut off
            faults = json.loads(path.with_suffix(".json").read_bytes())
            pixels = np.load(path, mmap_mode="r", allow_pickle=False)
            names = {picture.path for picture in pictures}
            shape = (sum(picture.path not in faults for picture in pictures), *self.form.shape)
            if pixels.dtype == np.uint8 and pixels.shape == shape and names.issuperset(faults):
                return pixels, faults
        return None

    def write(self, pictures: Sequence[Picture], pixels: np.ndarray, faults: Mapping[str, str]) -> None:
        """Write a block; raises SigmaDataError if the disk is full, or the folder cannot be written to."""
        path = self._path(pictures)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with _replacing(path) as file:
                np.lib.format.write_array(file, pixels, allow_pickle=False)
            with _replacing(path.with_suffix(".json")) as file:  # last: a block without it is not complete
                file.write(json.dumps(faults).encode())
        except OSError as error:
            raise SigmaDataError(
                f"{path}: decoded pictures cannot be kept: {error.strerror or error}. Make room, set `cache` to a "
                "folder elsewhere, or `memory` to more than they need. What is there already is used again."
            ) from error

    def _path(self, pictures: Sequence[Picture]) -> Path:
        """Return the path of a block."""
        about = [
            VERSION,
            pillow().version,
            str(self.root.resolve()),
            astuple(self.form),
            [astuple(picture) for picture in pictures],
        ]
        return self.folder / f"{hashlib.sha256(json.dumps(about).encode()).hexdigest()}.npy"


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes a path once it is complete and on the disk."""
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name[:16]}-", suffix=".part", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def default_folder() -> Path:
    """Return the folder of caches: ``$SIGMA_CACHE``, or one in the user's cache directory."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    import pooch  # type: ignore[import-untyped]  # takes long to import

    return Path(pooch.os_cache("sigma"))
