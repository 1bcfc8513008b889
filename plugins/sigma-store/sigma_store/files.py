"""Write files atomically, and read only regular files."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store.folders import WrittenFolder, sync
from sigma_store.regular import IRREGULAR, open_regular

LARGEST = 16 << 20  # bytes of a document: a limit on memory for reading it
LONGEST = 1 << 28  # bytes of a line, likewise


def digest(data: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


# -- writing -----------------------------------------------------------------------------------------------------------
def put_text(path: Path, text: str, inside: WrittenFolder | None = None) -> None:
    """Write a text as :func:`put` does."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:  # a path that the locale's encoding cannot represent
        raise SigmaStateError(f"{path}: would hold a path that the locale cannot encode. Set PYTHONUTF8=1.") from error
    put(path, data, inside)


def put(path: Path, data: bytes, inside: WrittenFolder | None = None) -> None:
    """Write a file atomically, by renaming a finished one, ``inside`` its folder; raise SigmaStateError on failure."""
    if path.is_symlink():
        raise SigmaStateError(f"{path}: is a link, and nothing is written through one. Remove it.")
    try:
        with (inside or WrittenFolder(path.parent)).open() as folder:
            part = folder / f".{path.name}.part"
            try:
                part.unlink(missing_ok=True)
                put_bytes(part, data)
                part.replace(folder / path.name)
                sync(folder)
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        remedy = "Free disk space there, and make it writable"
        raise SigmaStateError(f"{path}: cannot be written: {error.strerror}. {remedy}.") from error


def put_soon(path: Path, data: bytes, home: WrittenFolder) -> None:
    """Write a file atomically in a folder, or in new folders below it, without waiting for the disk.

    Raises SigmaStateError if the disk is full, or a link is in place of a folder.
    """
    try:
        with home.open(*path.relative_to(home.path).parent.parts, make=True) as folder:
            part = folder / f".{path.name}.part"
            part.unlink(missing_ok=True)
            with part.open("xb") as file:
                file.write(data)
            part.replace(folder / path.name)
    except OSError as error:
        remedy = "Free disk space, and remove a link or a file in place of its folder"
        raise SigmaStateError(f"{path}: cannot be written: {error.strerror}. {remedy}.") from error


def remove(path: Path, home: WrittenFolder) -> None:
    """Remove a file in a folder, or in folders below it, if it is there; raise SigmaStateError if that fails."""
    try:
        with home.open(*path.relative_to(home.path).parent.parts) as folder:
            (folder / path.name).unlink(missing_ok=True)
    except FileNotFoundError:
        return  # nor is its folder
    except OSError as error:
        raise SigmaStateError(f"{path}: cannot be removed: {error.strerror}. Make its folder writable.") from error


def put_bytes(path: Path, data: bytes) -> None:
    """Write a new file, and wait until it is on the disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


# -- reading -----------------------------------------------------------------------------------------------------------
@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise SigmaCheckpointError where reading a file fails."""
    try:
        yield
    except (OSError, MemoryError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SigmaCheckpointError(f"{path}: cannot be read: {reason}. Restore it from a copy.") from error


def get_bytes(path: Path, most: int = sys.maxsize, start: int = 0, count: int = sys.maxsize) -> bytes:
    """Read a regular file of at most ``most`` bytes; never follow a link, or wait for a pipe.

    Returns at most ``count`` bytes from ``start`` on.  Raises SigmaCheckpointError.
    """
    with _reading(path):
        size = get_size(path)
        if size > most:
            raise SigmaCheckpointError(f"{path}: is damaged: it has {size:,} bytes. Restore it from a copy.")
        with open_regular(path) as file:
            file.seek(min(start, size))
            return file.read(min(count, size))


def get_size(path: Path) -> int:
    """Return the bytes of a regular file; raise SigmaCheckpointError."""
    with _reading(path):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise SigmaCheckpointError(f"{path}: {IRREGULAR}. Restore it from a copy.")
        return status.st_size


def get_lines(path: Path, start: int = 0) -> Iterator[str]:
    """Yield the lines of a regular file from a byte on, each with its end; only one is in memory at a time.

    Raises SigmaCheckpointError, also for a line of more than ``LONGEST`` bytes: a damaged file may have no end of line.
    """
    with _reading(path), open_regular(path) as file:
        file.seek(start)
        while line := file.readline(LONGEST + 1):
            if len(line) > LONGEST:
                raise SigmaCheckpointError(
                    f"{path}: is damaged: it has a line of more than {LONGEST:,} bytes. Restore it from a copy."
                )
            yield line.decode(errors="replace")


def document(path: Path, text: bytes) -> dict[str, Any]:
    """Parse the JSON object in a file; raise SigmaCheckpointError if it is invalid."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SigmaCheckpointError(f"{path}: not JSON: {error!r:.200}. Restore it from a copy.") from error
    if not isinstance(content, dict):
        raise SigmaCheckpointError(f"{path}: not a JSON object. Restore it from a copy.")
    return content
