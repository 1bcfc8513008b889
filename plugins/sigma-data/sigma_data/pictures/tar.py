"""Index a tar archive, and read its members from any thread: of a plain one by offsets, of a compressed one unpacked.

A compressed archive can be read from its beginning alone.  It is unpacked once, to a temporary file without a name,
which is kept for the last archive until another one is read, or the process ends.
"""

from __future__ import annotations

import tarfile
import tempfile
import weakref
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import IO, Any

from attrs import define, field, frozen

from sigma_data.bounds import CHUNK
from sigma_data.sources.compressed import DAMAGE, Compressed, compression
from sigma_data.sources.file import File
from sigma_kernel import SigmaDataError

TAR_ENDS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz", ".tar.zst", ".tzst")
LONGEST = 1 << 20  # bytes of a header, which tarfile reads at once
MEMBERS = 1 << 21
UNPACKED, RATIO = 1 << 27, 100  # bytes that any archive may unpack to, and how many times its size
KINDS = {tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "link", tarfile.CHRTYPE: "device", tarfile.BLKTYPE: "device",
         tarfile.FIFOTYPE: "pipe"}  # fmt: skip


@frozen(eq=False)
class TarArchive:
    """An open tar archive: where its members start, and their sizes; and size and time of change of the file."""

    file: IO[bytes] = field(repr=False)
    places: dict[str, tuple[int, int]]
    stamp: tuple[int, int]
    _lock: Any = field(factory=Lock, repr=False)

    def read(self, start: int, size: int) -> bytes:
        """Return the content of a member, from any thread; raises OSError if it is cut off."""
        with self._lock:
            self.file.seek(start)
            content = self.file.read(size)
        if len(content) < size:
            raise OSError("it is cut off")
        return content


def read_tar(root: Path) -> TarArchive:
    """Return the index of an archive, which is kept until another one is read or the file changes.

    Raises SigmaDataError for one that is damaged, unpacks to too much, or holds links or devices.
    """
    with File(root).open():  # checks that it is a regular file
        about = root.stat()
    return _read_once(root.absolute(), str(root), (about.st_size, about.st_mtime_ns))


@lru_cache(maxsize=1)
def _read_once(path: Path, name: str, stamp: tuple[int, int]) -> TarArchive:
    file = path.open("rb")
    try:
        if compression(file) not in (None, "tar"):
            file.close()
            file = _unpack(path, name, stamp[0])
        archive = TarArchive(file, dict(_index(file, name)), stamp)
        weakref.finalize(archive, file.close)
        return archive
    except BaseException:
        file.close()
        raise


def _unpack(path: Path, name: str, size: int) -> Any:
    """Return a temporary file with what a compressed archive holds."""
    most, done = max(UNPACKED, RATIO * size), 0
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - the caller reads members of it
    try:
        with Compressed(File(path), limit=1 << 62).open() as stream:
            while chunk := stream.read(CHUNK):
                done += len(chunk)
                if done > most:
                    raise SigmaDataError(
                        f"{name}: unpacks to more than {most >> 20:,} MiB, {RATIO} times its size. If that is right, "
                        "unpack it yourself, and give the folder or the .tar file."
                    )
                copy.write(chunk)
        copy.flush()
        return copy
    except OSError as error:
        copy.close()
        raise SigmaDataError(
            f"{name}: cannot be unpacked to {tempfile.gettempdir()}: {error.strerror or error}. Make room there, name "
            "another folder by TMPDIR, or give the .tar file."
        ) from error
    except BaseException:
        copy.close()
        raise


def _index(file: IO[bytes], name: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the path of each member with its place; raise SigmaDataError for one that is not a file, or comes twice."""
    end, seen = file.seek(0, 2), set[str]()
    file.seek(0)
    try:
        bounded: Any = BoundedHeaders(file)
        archive: Any
        with tarfile.open(fileobj=bounded, mode="r:") as archive:
            for info in archive:
                archive.members = []  # which would be kept
                if info.isdir():
                    continue
                path = info.name.removeprefix("./")
                _check(info, path, end, name)
                if path in seen:
                    raise SigmaDataError(f"{name}: holds {path!r} twice. Pack it again.")
                seen.add(path)
                if len(seen) > MEMBERS:
                    raise SigmaDataError(f"{name}: holds more than {MEMBERS:,} files. Divide it.")
                yield path, (info.offset_data, info.size)
            file.seek(archive.offset)
            if file.read(tarfile.BLOCKSIZE).strip(b"\0") or archive.offset >= end:
                raise ValueError(f"it ends at byte {archive.offset:,} without its last block")
    except DAMAGE as error:
        raise SigmaDataError(f"{name}: is no tar archive, or damaged: {error}. Pack it again.") from error


def _check(info: tarfile.TarInfo, path: str, end: int, name: str) -> None:
    """Raise SigmaDataError for a member that is no plain file within the archive."""
    if kind := KINDS.get(info.type):
        where = f" to {info.linkname!r}" if kind == "link" else ""
        raise SigmaDataError(
            f"{name}: {path!r} is a {kind}{where}. Pack files alone: tar --dereference --hard-dereference."
        )
    if not info.isreg() or info.issparse():
        raise SigmaDataError(f"{name}: {path!r} is no plain file. Pack it again.")
    if info.size < 0 or info.offset_data + info.size > end:
        raise SigmaDataError(f"{name}: is cut off, or damaged: {path!r} has {info.size:,} bytes. Pack it again.")


@define(eq=False)
class BoundedHeaders:
    """A file of which at most a bounded number of bytes is read at once, whatever a header declares."""

    file: IO[bytes]

    def read(self, size: int = -1) -> bytes:
        """Read bytes; raise ValueError for too many."""
        if not 0 <= size <= LONGEST:
            raise ValueError(f"a header has {size:,} bytes")
        return self.file.read(size)

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place."""
        return self.file.seek(place, whence)

    def tell(self) -> int:
        """Return the place."""
        return self.file.tell()
