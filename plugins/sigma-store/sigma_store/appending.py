"""Append to a file of a run that stays open: queue what cannot be written now, and restore what others remove."""

from __future__ import annotations

import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from attrs import Factory, define, field

from sigma_kernel.contracts.storing import RowWriter
from sigma_kernel.errors import SigmaStateError
from sigma_store.folders import WrittenFolder, sync

BLOCK = 1 << 24  # bytes that are copied at a time


@define(eq=False)
class AppendedFile(RowWriter):
    """A file that rows are appended to, each as some bytes.  Without a path, nothing is written.

    If the disk is full, rows are queued and written with a later row: the first failure logs an alarm, the others are
    counted.  The file stays open, so that it can be restored if it is deleted; ``mend`` then restores what else is
    missing in its folder.
    """

    path: Path | None = None
    log: Callable[[str], None] = lambda text: None
    mend: Callable[[], None] = lambda: None
    folder: WrittenFolder = Factory(lambda made: WrittenFolder((made.path or Path()).parent), takes_self=True)
    waiting: list[bytes] = field(factory=list, init=False)
    _late: int = field(default=0, init=False)  # rows that were queued
    _doubtful: bool = field(default=False, init=False)  # it is unknown how much of the file is on the disk
    _handle: int = field(default=-1, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)

    def __attrs_post_init__(self) -> None:
        """Create the file, or continue after its last complete row."""
        if self.path is None:
            return
        whole = self._measure(self.path) if os.path.lexists(self.path) else 0
        with self.folder.open() as folder:
            self._handle = _open_file(folder / self.path.name, os.O_CREAT)
        weakref.finalize(self, os.close, self._handle)  # close it when the last writer is gone
        if whole < self.size:
            os.ftruncate(self._handle, whole)
        with self._gate:
            self._begin(empty=not whole)
            self._write()

    @abstractmethod
    def _measure(self, path: Path) -> int:
        """Return the bytes of the complete rows of a file that is there."""

    @abstractmethod
    def _begin(self, empty: bool) -> None:
        """Queue what the file lacks."""

    @property
    def is_kept(self) -> bool:
        """Return whether there is a file."""
        return self.path is not None

    @property
    def is_behind(self) -> bool:
        """Return whether rows are queued."""
        return bool(self.waiting)

    @property
    def size(self) -> int:
        """Return the bytes of the file; 0 without one."""
        return 0 if self.path is None else os.fstat(self._handle).st_size

    def _write(self) -> str | None:
        """Write all queued rows, or return why they cannot be written."""
        assert self.path is not None
        try:
            if self._doubtful or not _leads(self.path, self._handle):
                self._put_back(self.path)
            _add(self._handle, b"".join(self.waiting))
        except (OSError, SigmaStateError) as error:
            return self._alarm(error)
        if self._late:
            self.log(f"{self.path}: can be written again; {self._late} queued rows are written.")
        self._late = 0
        self.waiting.clear()
        return None

    def _alarm(self, error: Exception) -> str:
        why = f"{error.strerror}. Free disk space." if isinstance(error, OSError) else str(error)
        if not self._late:
            self.log(f"ALARM: {self.path}: cannot be written: {why} Training continues.")
        self._late = max(self._late, len(self.waiting), 1)
        return why

    def _put_back(self, path: Path) -> None:
        """Restore the deleted file from the open handle, and write to the copy from now on."""
        self.mend()
        gone = not _leads(path, self._handle)
        self._renew(path, _blocks(self._handle))
        self._doubtful = False
        if gone:
            self.log(f"ALARM: {path}: was removed or replaced while the run was writing it. It is restored.")

    def _renew(self, path: Path, blocks: Iterable[bytes]) -> None:
        """Write a new file in place of the one that is open, and write to that from now on."""
        with self.folder.open() as folder:
            part = folder / f".{path.name}.part"
            part.unlink(missing_ok=True)
            copy = _open_file(part, os.O_CREAT | os.O_EXCL)
            try:
                for block in blocks:
                    _add(copy, block)
                os.fsync(copy)
                part.replace(folder / path.name)
                sync(folder)
                os.dup2(copy, self._handle, inheritable=False)  # also for a thread that is syncing it
            finally:
                os.close(copy)


def _blocks(handle: int) -> Iterator[bytes]:
    """Yield the contents of an open file."""
    place = 0
    while block := os.pread(handle, BLOCK, place):
        yield block
        place += len(block)


def _open_file(path: Path, how: int) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | how, 0o666)


def _leads(path: Path, handle: int) -> bool:
    """Return whether a path still refers to an open file."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _add(handle: int, data: bytes) -> None:
    """Append all of the data to a file, or none of it."""
    end = os.fstat(handle).st_size
    try:
        while data:
            data = data[os.write(handle, data) :]
    except OSError:
        os.ftruncate(handle, end)
        raise
