"""The files of a run folder: create and lock it, write files atomically, and read only regular files.

``config.toml`` (resolved), ``plugins.json``, ``journal.jsonl``, ``metrics.jsonl``, ``summary.json`` and
``checkpoints/<trainer>/<iteration>/``.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaStateError

try:
    import fcntl
except ImportError:  # Windows: no locks
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}  # of file systems without locks, such as some on clusters
LARGEST = 16 << 20  # bytes of a document: a limit on memory for reading it


def create(parent: Path, name: str) -> Path:
    """Create a new folder ``<name>-<time>`` in ``parent`` and return it."""
    if not re.fullmatch(r"\w[\w .-]*+", name):
        raise SigmaConfigError(f"run.name: {name!r} cannot begin a folder's name. Use letters, digits, '-' and '_'.")
    base = f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    names = chain([base], (f"{base}-{number}" for number in count(1)))
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            with suppress(FileExistsError):
                folder = parent / next(names)
                folder.mkdir()
                return folder
    except OSError as error:
        raise SigmaConfigError(f"{parent}: cannot be created: {error.strerror}. Choose another run.folder.") from error


def claim(run: Path) -> int:
    """Lock a run folder until the returned file descriptor is closed; raise SigmaStateError if it is locked."""
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)
    handle = os.open(run, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise SigmaStateError(f"{run}: another run writes to it. Wait for its end.") from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            os.close(handle)
            raise SigmaStateError(f"{run}: cannot be locked: {error.strerror}. Check that file system.") from error
    return handle


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
    if sys.platform == "win32":
        return  # folders cannot be opened on Windows
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- reading -----------------------------------------------------------------------------------------------------------
def get_bytes(path: Path, most: int = sys.maxsize) -> bytes:
    """Read a regular file of at most ``most`` bytes; never follow a link, or wait for a pipe.

    Raises SigmaCheckpointError.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise SigmaCheckpointError(f"{path}: not a regular file. Restore it from a copy.")
        if status.st_size > most:
            raise SigmaCheckpointError(f"{path}: is damaged: it has {status.st_size:,} bytes. Restore it from a copy.")
        with path.open("rb") as file:
            return file.read(status.st_size)
    except (OSError, MemoryError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SigmaCheckpointError(f"{path}: cannot be read: {reason}. Restore it from a copy.") from error


def document(path: Path, text: bytes) -> dict[str, Any]:
    """Parse the JSON object in a file; raise SigmaCheckpointError if it is invalid."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SigmaCheckpointError(f"{path}: not JSON: {error!r:.200}. Restore it from a copy.") from error
    if not isinstance(found, dict):
        raise SigmaCheckpointError(f"{path}: not a JSON object. Restore it from a copy.")
    return found
