"""Find run folders, and tell which of them a process writes to; nothing of them is read."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep

from sigma_kernel.errors import SigmaStateError

CONFIG, LOCK = "config.toml", ".lock"  # the names of the file that makes a folder that of a run, and of the lock file
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}  # of file systems without locks, such as some on clusters


def run_folders(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the run folders among and directly below some folders, oldest first."""
    for folder in folders:
        inside = folder.iterdir() if folder.is_dir() and not _is_run(folder) else [folder]
        yield from sorted(filter(_is_run, inside), key=lambda run: ((run / CONFIG).lstat().st_mtime_ns, run))


def _is_run(folder: Path) -> bool:
    return not folder.is_symlink() and os.path.lexists(folder / CONFIG)


def is_locked(run: Path) -> bool:
    """Return whether a process writes to a run folder; False if that cannot be told."""
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError, SigmaStateError):
        try:
            handle = os.open(run / LOCK, how)
        except OSError:  # another user's, or of a version without lock files
            handle = os.open(run, how)
        try:
            return not flock(run, handle, fcntl.LOCK_SH, 1)
        finally:
            os.close(handle)
    return False


def flock(run: Path, handle: int, kind: int = fcntl.LOCK_EX, attempts: int = 10) -> bool:
    """Lock an open file; return False if another process has locked it.

    A listing of runs holds a shared lock for a moment, so that it is tried several times.
    """
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if attempts == 1:
            return False
        sleep(0.02)
        return flock(run, handle, kind, attempts - 1)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise SigmaStateError(f"{run}: cannot be locked: {error.strerror}. Check that file system.") from error
    return True
