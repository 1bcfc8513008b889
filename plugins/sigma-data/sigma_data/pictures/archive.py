"""List and open the files, such as pictures, in a zip or tar archive, which is not extracted."""

from __future__ import annotations

import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from attrs import frozen

from sigma_data.pictures.decoding import ENDS
from sigma_data.pictures.tar import TAR_ENDS, read_tar
from sigma_kernel import SigmaDataError

ARCHIVES = (".zip", *TAR_ENDS)
MOST = 1 << 28  # bytes of a member
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error)
UNREADABLE = (OSError, RuntimeError, ValueError, EOFError, *DAMAGED)  # raised by zipfile
OUTSIDE = re.compile(r"(?:^|/)\.\.(?:/|$)|^/|\\|^[A-Za-z]:")


@frozen
class ArchiveMember:
    """A file in an archive: its size, what differs after a change of it, and how to read it."""

    size: int
    modified: int
    read: Callable[[], bytes]


@frozen(eq=False)
class FileArchive:
    """An open archive: its members by path, below the folder that holds all that are asked for, if there is one."""

    root: Path
    members: dict[str, ArchiveMember]

    @contextmanager
    def open_member(self, path: str) -> Iterator[IO[bytes]]:
        """Open a member as a stream of bytes that it can go back in; raises OSError for one that cannot be read."""
        member = self.members[path]
        if member.size > MOST:
            raise OSError(f"it is longer than {MOST >> 20} MiB")
        try:
            content = member.read()
        except UNREADABLE as error:
            raise OSError(f"{error}") from error
        yield io.BytesIO(content)


def is_archive(root: Path) -> bool:
    """Return whether a place is a zip or tar archive, by its name."""
    return root.name.lower().endswith(ARCHIVES) and root.is_file()


def strip_end(name: str) -> str:
    """Return the name of a folder or an archive without the end that names its format."""
    end = next((end for end in sorted(ARCHIVES, key=len, reverse=True) if name.lower().endswith(end)), "")
    return name[: len(name) - len(end)]


@contextmanager
def open_archive(root: Path, ends: tuple[str, ...] = ENDS) -> Iterator[FileArchive]:
    """Open an archive, to read files whose names end in one of these.

    Raises SigmaDataError for one that is damaged, and for names that leave it or come twice.
    """
    with (_open_zip if root.name.lower().endswith(".zip") else _open_tar)(root) as members:
        for name in members:
            if OUTSIDE.search(name):
                raise SigmaDataError(f"{root}: the path {name!r} leaves the archive. Pack it again.")
        top = _find_top(members, ends)
        yield FileArchive(root, {name.removeprefix(top): about for name, about in members.items()})


@contextmanager
def _open_zip(root: Path) -> Iterator[Mapping[str, ArchiveMember]]:
    """Return the members of a zip archive; links are left out."""
    try:
        file = zipfile.ZipFile(root)
    except UNREADABLE as error:
        raise SigmaDataError(f"{root}: is no zip archive, or damaged: {error}. Pack it again.") from error
    with file:
        files = [info for info in file.infolist() if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16)]
        members: dict[str, ArchiveMember] = {}
        for info in files:
            if info.filename in members:
                raise SigmaDataError(f"{root}: holds {info.filename!r} twice. Pack it again.")
            members[info.filename] = ArchiveMember(info.file_size, info.CRC, partial(file.read, info))
        yield members


@contextmanager
def _open_tar(root: Path) -> Iterator[Mapping[str, ArchiveMember]]:
    """Return the members of a tar archive."""
    archive = read_tar(root)
    yield {
        name: ArchiveMember(size, archive.stamp[1], partial(archive.read, start, size))
        for name, (start, size) in archive.places.items()
    }


def _find_top(names: Iterable[str], ends: tuple[str, ...]) -> str:
    """Return the folder, with a slash, that holds all files with such ends in folders of its own; or nothing."""
    files = [name for name in names if name.lower().endswith(ends) and not name.startswith("__MACOSX/")]
    tops = {name.partition("/")[0] for name in files}
    return f"{tops.pop()}/" if len(tops) == 1 and all(name.count("/") > 1 for name in files) else ""
