"""List and open the pictures in a zip archive, which is not extracted."""

from __future__ import annotations

import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from attrs import frozen

from sigma_data.pictures.decoding import ENDS
from sigma_kernel import SigmaDataError

MOST = 1 << 28  # bytes of a member
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error)
UNREADABLE = (OSError, RuntimeError, ValueError, EOFError, *DAMAGED)  # raised by zipfile
OUTSIDE = re.compile(r"(?:^|/)\.\.(?:/|$)|^/|\\|^[A-Za-z]:")


@frozen(eq=False)
class PictureArchive:
    """An open archive: its members by path, below the folder that holds all pictures, if there is one."""

    root: Path
    file: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]

    @contextmanager
    def open_member(self, path: str) -> Iterator[IO[bytes]]:
        """Open a member as a stream of bytes that it can go back in; raises OSError for one that cannot be read."""
        if self.members[path].file_size > MOST:
            raise OSError(f"it is longer than {MOST >> 20} MiB")
        try:
            content = self.file.read(self.members[path])
        except UNREADABLE as error:
            raise OSError(f"{error}") from error
        yield io.BytesIO(content)


def is_archive(root: Path) -> bool:
    """Return whether a place is a zip archive, by its name."""
    return root.suffix.lower() == ".zip" and root.is_file()


@contextmanager
def open_archive(root: Path) -> Iterator[PictureArchive]:
    """Open an archive.

    Raises SigmaDataError for one that is damaged, and for names that leave it or come twice.
    """
    try:
        file = zipfile.ZipFile(root)
    except UNREADABLE as error:
        raise SigmaDataError(f"{root}: is no zip archive, or damaged: {error}. Pack it again.") from error
    with file:
        members: dict[str, zipfile.ZipInfo] = {}
        for member in file.infolist():
            if member.is_dir() or stat.S_ISLNK(member.external_attr >> 16):
                continue
            if OUTSIDE.search(member.filename):
                raise SigmaDataError(f"{root}: the path {member.filename!r} leaves the archive. Pack it again.")
            if member.filename in members:
                raise SigmaDataError(f"{root}: holds {member.filename!r} twice. Pack it again.")
            members[member.filename] = member
        top = _find_top(members)
        yield PictureArchive(root, file, {name.removeprefix(top): about for name, about in members.items()})


def _find_top(names: Iterable[str]) -> str:
    """Return the folder, with a slash, that holds all pictures in folders of its own; empty if there is none."""
    pictures = [name for name in names if name.lower().endswith(ENDS) and not name.startswith("__MACOSX/")]
    tops = {name.partition("/")[0] for name in pictures}
    return f"{tops.pop()}/" if len(tops) == 1 and all(name.count("/") > 1 for name in pictures) else ""
