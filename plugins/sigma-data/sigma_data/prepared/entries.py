"""The cache of prepared tables: a folder for each, with a document, and arrays that are mapped to memory.

The name of a folder is a hash of what its arrays are made from: the content of files, and all settings.  A lock keeps
two processes from preparing the same table at once.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from sigma_data.pictures.cache import default_folder
from sigma_data.pictures.progress import report
from sigma_kernel import SigmaDataError

DOCUMENT = "entry.json"
FOLDER = "tables"
LOCK = ".locked"
ZEROS = 1 << 24  # bytes that are written at once
PART = ".part"  # ends the name of a file that is not complete


@frozen
class PreparedEntry:
    """A folder of the cache."""

    folder: Path

    @classmethod
    def in_folder(cls, cache: Path | None, key: str) -> PreparedEntry:
        """Return the entry of a key: by default below ``$SIGMA_CACHE`` or the user's cache directory."""
        return cls((cache or default_folder() / FOLDER) / key)

    @contextmanager
    def hold_lock(self, wait: bool = True) -> Iterator[None]:
        """Hold the lock of the entry, after another process has released it; the folder is there then.

        Errors of the system become a SigmaDataError with the remedy, and so does a lock of another process if it is not
        to be waited for.
        """
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            handle = _lock(self._lock_path, wait)
            try:
                self.folder.mkdir(exist_ok=True)
                yield
            finally:
                os.close(handle)
        except OSError as error:
            raise SigmaDataError(
                f"{self.folder}: prepared rows cannot be kept: {error.strerror or error}. Make room, or set `cache` to "
                "a folder elsewhere. What is there already is used again."
            ) from error

    @property
    def _lock_path(self) -> Path:
        return self.folder.with_name(self.folder.name + LOCK)

    # -- the document --------------------------------------------------------------------------------------------------
    def read(self) -> dict[str, Any]:
        """Return the document; empty if there is none, or if it is damaged."""
        with suppress(OSError, ValueError):
            document = json.loads((self.folder / DOCUMENT).read_bytes())
            return document if isinstance(document, dict) else {}
        return {}

    def write(self, document: Mapping[str, Any]) -> None:
        """Replace the document, once the new one is on the disk."""
        with self.replacing(DOCUMENT) as part:
            part.write_text(json.dumps(document))

    @contextmanager
    def replacing(self, name: str) -> Iterator[Path]:
        """Yield a path to write to, which becomes the file of this name; nothing is left of it after an error."""
        part = self.folder / (name + PART)
        try:
            yield part
            with open(part, "rb") as file:
                os.fsync(file.fileno())
            os.replace(part, self.folder / name)
        finally:
            part.unlink(missing_ok=True)

    def touch(self) -> None:
        """Note the time of this use."""
        with suppress(OSError):  # of a folder that others may only read
            os.utime(self.folder / DOCUMENT)

    # -- arrays --------------------------------------------------------------------------------------------------------
    def create(self, section: str, shape: tuple[int, ...], dtype: np.dtype) -> np.memmap[Any, Any]:
        """Return a new array, mapped to a file that has its full size on the disk; nothing is left after an error."""
        path = self._array_path(section)
        path.unlink(missing_ok=True)  # another process may have mapped it, and goes on with what it has
        try:
            array = np.lib.format.open_memmap(path, "w+", dtype, shape)
            with open(path, "rb+") as file:
                _allocate(file.fileno(), array.offset, os.fstat(file.fileno()).st_size)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return array

    def map(self, section: str, shape: tuple[int, ...], dtype: np.dtype, mode: str = "r") -> np.ndarray | None:
        """Return an array, mapped to memory; None if it is not there in this form."""
        path = self._array_path(section)
        try:
            array = np.load(path, mmap_mode=mode, allow_pickle=False)  # type: ignore[arg-type]
        except (FileNotFoundError, ValueError, EOFError):
            return None
        except OSError as error:
            raise SigmaDataError(f"{path}: cannot be read: {error.strerror or error}.") from error
        return array if array.shape == shape and array.dtype == dtype else None

    def _array_path(self, section: str) -> Path:
        """Return the path of the array of a section, whose name may be any text."""
        return self.folder / f"{section.encode().hex()}.npy"

    # -- all of it -----------------------------------------------------------------------------------------------------
    @property
    def source(self) -> str:
        """Return the name of the table."""
        return str(self.read().get("source", "?"))

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(map(_count_bytes, self.folder.glob("*")))

    @property
    def last_use(self) -> float:
        """Return the time of the last use, in seconds since 1970; 0 if there is no document."""
        with suppress(OSError):
            return (self.folder / DOCUMENT).stat().st_mtime
        return 0.0

    def clear(self) -> None:
        """Delete the files of the entry, whose lock is held."""
        for path in self.folder.iterdir():
            path.unlink()

    def remove(self) -> None:
        """Delete the entry; runs that read it go on with what they have mapped.

        Raises SigmaDataError if a process prepares it.
        """
        with self.hold_lock(wait=False):
            shutil.rmtree(self.folder)
            self._lock_path.unlink()


def list_entries(cache: Path | None = None) -> list[PreparedEntry]:
    """Return the entries of the cache, the one used last first."""
    folder = cache or default_folder() / FOLDER
    if not folder.is_dir():
        return []
    entries = [PreparedEntry(path) for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{64}", path.name)]
    return sorted(entries, key=lambda entry: -entry.last_use)


def _lock(path: Path, wait: bool) -> int:
    """Return the handle of a lock file, which is locked, and still there: another process may have deleted it."""
    while True:
        handle = _open_lock(path)
        try:
            _take_lock(path, handle, wait)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open_lock(path: Path) -> int:
    """Return the handle of a lock file; of one in a folder that others may only read, as it is."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EROFS) or not path.exists():
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _take_lock(path: Path, handle: int, wait: bool) -> None:
    """Lock a file, and say so where that takes long; raise SigmaDataError if it is not to be waited for."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if not wait:
            raise SigmaDataError(f"{path.stem}: a process prepares it now. Try again when it is complete.") from None
        report(f"{path.stem}: another process prepares this table, and is waited for.")
        fcntl.flock(handle, fcntl.LOCK_EX)


def _count_bytes(path: Path) -> int:
    """Return the size of a file, 0 if it is no longer there."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _allocate(handle: int, first: int, size: int) -> None:
    """Reserve the bytes of a file on the disk: a write to a map of a full disk would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    for start in range(first, size, ZEROS):  # macOS
        os.pwrite(handle, bytes(min(ZEROS, size - start)), start)
