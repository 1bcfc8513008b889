"""Read and write cached files, in a directory that only the user can write to: their content is executed.

The directory must belong to the user and have mode 700; a file must belong to the user and must not be a link.  The
location does not matter, ``/tmp`` included: the directory is opened once and checked when open, and files are opened
relative to it, not by a path that others could redirect meanwhile.  A file begins with a digest of its name and its
content, so that a damaged or a renamed file is not loaded.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path

from attrs import frozen

VARIABLE = "SIGMA_NUMBA_CACHE"
LIMIT = 256 << 20  # bytes of all files; those that were not read for longest are removed
FRESH = 86_400.0  # seconds within which a file that is read is not marked again
DIGEST = 32  # bytes of the header
NAMES = ("sigma_", "unit_")  # what the names of programs and of units begin with
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_warned: list[str] = []  # in this process
_log = logging.getLogger("sigma.numba")


def folder() -> Path:
    """Return the cache directory: ``$SIGMA_NUMBA_CACHE``, or one below the user's cache directory.

    Raises RuntimeError if the user has no home directory.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "sigma" / "numba"
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "sigma" / "numba"  # as XDG requires


def read(name: str) -> bytes | None:
    """Return the content of a file, or None if it is missing, damaged or owned by another user."""
    try:
        with _open_cache() as place:
            content = place.read(name)
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError) as error:
        _warn(str(error))
        return None
    return content[DIGEST:] if content[:DIGEST] == _digest(name, content[DIGEST:]) else None


def write(name: str, content: bytes) -> None:
    """Write a file atomically: other processes may read and write at the same time."""
    try:
        with _open_cache() as place:
            place.write(name, _digest(name, content) + content)
    except (OSError, RuntimeError) as error:
        _warn(str(error))


def prune() -> None:
    """Remove the files that were not used for longest if all are larger than the limit."""
    try:
        with _open_cache() as place:
            place.prune()
    except (OSError, RuntimeError) as error:
        _warn(str(error))


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _warn(error: str) -> None:
    """Log once per process that the cache is unusable."""
    if not _warned:
        _warned.append(error)
        _log.warning("numba: the cache of compiled programs cannot be used (%s); each process compiles its own.", error)


@frozen
class _Place:
    """An open directory; its path is used if the system cannot open files relative to a descriptor."""

    path: Path
    descriptor: int | None

    def _file_name(self, name: str) -> str:
        return str(self.path / name) if self.descriptor is None else name

    def _open(self, name: str, flags: int) -> int:
        return os.open(self._file_name(name), flags | _FILE, 0o600, dir_fd=self.descriptor)

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(self._file_name(name), dir_fd=self.descriptor, follow_symlinks=False)

    def read(self, name: str) -> bytes:
        """Return a file's content; FileNotFoundError for a link, and for a file that others could have written."""
        status = self._stat(name)
        if not stat.S_ISREG(status.st_mode) or _foreign(status) or _open_to(status, 0o022):
            raise FileNotFoundError(f"{self.path / name} is not a file of your own")
        with os.fdopen(self._open(name, os.O_RDONLY), "rb") as file:
            if time.time() - status.st_mtime > FRESH:
                _mark_used(file.fileno(), self._file_name(name))
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, atomically for its readers."""
        temporary = f"{name}.{secrets.token_hex(8)}.new"
        try:
            with os.fdopen(self._open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(content)
            at = {"src_dir_fd": self.descriptor, "dst_dir_fd": self.descriptor}
            os.replace(self._file_name(temporary), self._file_name(name), **at)
        except OSError:
            self.remove(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(self._file_name(name), dir_fd=self.descriptor)

    def prune(self) -> None:
        """Remove the files that were not used for longest if they are too large together, unfinished ones as well."""
        names = os.listdir(self.path if self.descriptor is None else self.descriptor)
        used = sorted((self._use(name) for name in names if name.startswith(NAMES)), reverse=True)
        for (_, _, name), total in zip(used, accumulate(size for _, size, _ in used), strict=True):
            if total > LIMIT:
                self.remove(name)

    def _use(self, name: str) -> tuple[float, int, str]:
        """Return when a file was last used, and its bytes."""
        try:
            status = self._stat(name)
        except FileNotFoundError:  # another process was faster
            return 0.0, 0, name
        return status.st_mtime, status.st_size, name


@contextmanager
def _open_cache() -> Iterator[_Place]:
    """Open the cache directory, creating it if missing; OSError unless only the user can access it."""
    path = folder()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.open not in os.supports_dir_fd:
        yield _Place(path, None)
        return
    descriptor = os.open(path, _FOLDER)
    try:
        status, named = os.fstat(descriptor), path.lstat()
        if _foreign(status) or _open_to(status, 0o077) or (_foreign(named) and named.st_uid != 0):
            raise PermissionError(f"{path} is open to others; make it your own with mode 700")
        yield _Place(path, descriptor)
    finally:
        os.close(descriptor)


def _mark_used(descriptor: int, name: str) -> None:
    """Set the time of a file to now, if the file system allows that."""
    with suppress(OSError):
        os.utime(descriptor if os.utime in os.supports_fd else name)


def _foreign(found: os.stat_result) -> bool:
    """Return whether a file, a directory or a link belongs to another user."""
    return hasattr(os, "getuid") and found.st_uid != os.getuid()


def _open_to(found: os.stat_result, others: int) -> bool:
    """Return whether other users may access it."""
    return os.name == "posix" and bool(found.st_mode & others)
