"""Find run folders, detect those that a process writes to, and lock one for writing; their files are not read."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from time import sleep

from attrs import define, field

from sigma_kernel.errors import SigmaStateError

CONFIG, LOCK = "config.toml", ".lock"  # the names of the file that makes a folder that of a run, and of the lock file
JOURNAL, CURVES, CHECKPOINTS, MEDIA = "journal.jsonl", "curves.bin", "checkpoints", "media.jsonl"
OLDER_METRICS = "metrics.jsonl"  # of runs that have no curves, or of before they were continued
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}  # of file systems without locks, such as some on clusters


def run_folders(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the run folders among and directly below some folders, oldest first."""
    for folder in folders:
        inside = folder.iterdir() if folder.is_dir() and not _is_run(folder) else [folder]
        yield from sorted(filter(_is_run, inside), key=lambda run: ((run / CONFIG).lstat().st_mtime_ns, run))


def _is_run(folder: Path) -> bool:
    return not folder.is_symlink() and os.path.lexists(folder / CONFIG)


def is_locked(run: Path) -> bool:
    """Return whether a process writes to a run folder; False if that cannot be determined."""
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


# -- folders that others may replace meanwhile -------------------------------------------------------------------------
@define(eq=False)
class WrittenFolder:
    """A folder that is written to, known by more than its path: a link, or another folder, in its place is refused.

    It is the folder of the first opening, or a folder created since. Folders above it may be links.
    """

    path: Path  # of a run: absolute, as the process may go to another directory
    _known: list[os.stat_result] = field(factory=list, init=False)  # all created ones, as an older one may come back
    _gate: threading.Lock = field(factory=threading.Lock, init=False)

    def make(self) -> bool:
        """Make the folder, synced so that it survives a crash of the machine; return False if something is there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._gate, suppress(FileExistsError):
            self.path.mkdir()
            self._known.append(self.path.lstat())
            sync(self.path.parent)
            return True
        return False

    @contextmanager
    def open(self, *names: str, make: bool = False) -> Iterator[Path]:
        """Open a folder in it; yield a path that leads to this one, whatever is put in its place meanwhile.

        None of the ``names`` may be a link: OSError.  All are made if they are missing, with ``make``, and synced.
        Where the system has no ``/proc``, the path is the folder's.  Raises SigmaStateError if this was replaced.
        """
        if make:
            self.make()
        with ExitStack() as opened:
            handle = self._open_root(opened)
            for name in names:
                with suppress(FileExistsError):
                    if make:
                        os.mkdir(name, dir_fd=handle)
                        os.fsync(handle)
                handle = _open_handle(name, handle, opened)
            path, place = Path(f"/proc/self/fd/{handle}"), self.path.joinpath(*names)
            try:
                yield path if path.is_dir() else place
            except OSError as error:
                named = [str(error.filename).replace(f"{path}/", f"{place}/")] if error.filename else []
                raise OSError(*error.args, *named) from error

    def _open_root(self, opened: ExitStack) -> int:
        with self._gate:
            handle = _open_handle(self.path, None, opened)
            self._known = self._known or [os.fstat(handle)]
            if any(os.path.samestat(os.fstat(handle), stat) for stat in self._known):
                return handle
        remedy = "Put that back, or move this away to recreate it"
        raise SigmaStateError(f"{self.path}: a link or another folder is in place of the run's. {remedy}.")


def open_folder(folder: Path, inside: WrittenFolder | None = None, make: bool = False) -> AbstractContextManager[Path]:
    """Open a folder ``inside`` another, by default the second above it, as :meth:`WrittenFolder.open` does."""
    folder = folder.absolute()
    inside = inside or WrittenFolder(folder.parents[1])
    return inside.open(*folder.relative_to(inside.path.absolute()).parts, make=make)


def sync(folder: Path) -> None:
    """Wait until the entries of a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open_handle(name: str | Path, inside: int | None, opened: ExitStack) -> int:
    """Open a folder by its path, or without following a link inside an open one."""
    how = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if inside is None else os.O_NOFOLLOW)
    handle = os.open(name, how, dir_fd=inside)
    opened.callback(os.close, handle)
    return handle
