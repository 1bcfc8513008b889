"""Open pictures in a folder, or in an archive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from sigma_data.pictures.archive import FileArchive, is_archive, open_archive
from sigma_data.pictures.decoding import ENDS
from sigma_data.pictures.folder import Picture
from sigma_kernel import SigmaDataError

OpenPicture = Callable[[Picture], AbstractContextManager[IO[bytes]]]


@contextmanager
def open_place(root: Path, ends: tuple[str, ...] = ENDS) -> Iterator[OpenPicture]:
    """Return a function that opens a picture, or another file with such an end, from any thread.

    It does so while the place is open.  It raises OSError or ValueError for a file that cannot be read, and
    SigmaDataError for one that has changed since it was listed.
    """
    if not is_archive(root):
        yield partial(_open_file, root)
        return
    with open_archive(root, ends) as archive:
        yield partial(_open_member, archive)


@contextmanager
def _open_file(root: Path, picture: Picture) -> Iterator[IO[bytes]]:
    with open(root / picture.path, "rb", opener=_open_at_once) as stream:
        yield stream
        about = os.fstat(stream.fileno())
        _check_unchanged(root, picture, about.st_size, about.st_mtime_ns)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe in place of the file would block


@contextmanager
def _open_member(archive: FileArchive, picture: Picture) -> Iterator[IO[bytes]]:
    member = archive.members.get(picture.path)
    if member is None:
        raise FileNotFoundError(f"there is no such file in {archive.root.name}")
    _check_unchanged(archive.root, picture, member.size, member.modified)
    with archive.open_member(picture.path) as stream:
        yield stream


def _check_unchanged(root: Path, picture: Picture, size: int, modified: int) -> None:
    if (size, modified) != (picture.size, picture.modified):
        raise SigmaDataError(
            f"{root / picture.path}: has changed while the folder was read. Start again when it is complete."
        )
