"""Write files atomically, and read only regular files."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_kernel.regular import open_regular

FORMAT = 1
LARGEST = 16 << 20  # bytes of a document: a limit on memory for reading it


def digest(data: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


# -- writing -----------------------------------------------------------------------------------------------------------
def put_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write values as a JSON document."""
    put_text(path, json.dumps({"format": FORMAT, **values}, indent=1) + "\n")


def put_text(path: Path, text: str) -> None:
    """Write a file atomically, by renaming a finished one; raise SigmaStateError on failure."""
    if path.is_symlink():
        raise SigmaStateError(f"{path}: is a link, and nothing is written through one. Remove it.")
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.unlink(missing_ok=True)
        put_bytes(temporary, text.encode())
        temporary.replace(path)
        sync(path.parent)
    except UnicodeEncodeError as error:  # a path that the locale's encoding cannot represent
        raise SigmaStateError(f"{path}: would hold a path that the locale cannot encode. Set PYTHONUTF8=1.") from error
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        remedy = "Free disk space there, and make it writable"
        raise SigmaStateError(f"{path}: cannot be written: {error.strerror}. {remedy}.") from error


def put_bytes(path: Path, data: bytes) -> None:
    """Write a new file, and wait until it is on the disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Wait until the entries of a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- folders that others may replace meanwhile -------------------------------------------------------------------------
@contextmanager
def held(folder: Path, make: bool = False) -> Iterator[Path]:
    """Open a folder; yield a path that leads to this one, whatever is put in its place meanwhile.

    Neither it nor the folder around it may be a link: OSError.  Both are made if they are missing, with ``make``, and
    synced so that they survive a crash of the machine.  Where the system has no ``/proc``, the path is the folder's.
    """
    around = folder.absolute().parent
    with ExitStack() as opened:
        handle = _opened(around.parent, None, opened)
        for name in (around.name, folder.absolute().name):
            with suppress(FileExistsError):
                if make:
                    os.mkdir(name, dir_fd=handle)
                    os.fsync(handle)
            handle = _opened(name, handle, opened)
        path = Path(f"/proc/self/fd/{handle}")
        yield path if path.is_dir() else folder


def _opened(name: str | Path, inside: int | None, opened: ExitStack) -> int:
    """Open a folder by its path, or without following a link inside an open one."""
    how = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if inside is None else os.O_NOFOLLOW)
    handle = os.open(name, how, dir_fd=inside)
    opened.callback(os.close, handle)
    return handle


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
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise SigmaCheckpointError(f"{path}: not a regular file. Restore it from a copy.")
        if status.st_size > most:
            raise SigmaCheckpointError(f"{path}: is damaged: it has {status.st_size:,} bytes. Restore it from a copy.")
        with open_regular(path) as file:
            file.seek(min(start, status.st_size))
            return file.read(min(count, status.st_size))


def get_lines(path: Path, start: int = 0) -> Iterator[str]:
    """Yield the lines of a regular file from a byte on, each with its end; only one is in memory at a time.

    Raises SigmaCheckpointError.
    """
    with _reading(path), open_regular(path) as file:
        file.seek(start)
        for line in file:
            yield line.decode(errors="replace")


def document(path: Path, text: bytes) -> dict[str, Any]:
    """Parse the JSON object in a file; raise SigmaCheckpointError if it is invalid."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SigmaCheckpointError(f"{path}: not JSON: {error!r:.200}. Restore it from a copy.") from error
    if not isinstance(found, dict):
        raise SigmaCheckpointError(f"{path}: not a JSON object. Restore it from a copy.")
    return found
