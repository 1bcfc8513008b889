"""Append to the files of a run: ``journal.jsonl`` and ``metrics.jsonl``.

The journal holds every change from outside, with the moment at which it was applied, as a hash chain of lines.  The
metrics hold at most ten rows a second, plus one for each of the first epochs; between two rows, minimum and maximum are
kept.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import Factory, asdict, define, field

from sigma_kernel.contracts import storing
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.plain import strict
from sigma_kernel.threads import in_thread
from sigma_store.chain import START, Bookmark, JournalExcerpt, chain_row, encode_row, first_line, hash_of
from sigma_store.files import get_bytes
from sigma_store.folders import WrittenFolder, sync as sync_folder

MOST_BYTES = 1 << 20  # of lines already on the disk, kept for the manifest of the next checkpoint
EVERY = 1 << 20  # bytes of lines between two bookmarks, from which a resume can read
BOOKMARKS = 8  # kept in memory, in addition to the first
BLOCK = 1 << 24  # bytes that are copied at a time
MOST_LATE = 1 << 20, 1.0  # bytes not synced, and seconds since the last sync, after which the next row begins one
LONGEST = 4 << 20  # bytes of lines in a manifest, even if the disk takes none: the other fields need room too


# -- writing -----------------------------------------------------------------------------------------------------------
@define(eq=False)
class Lines(storing.RowWriter):
    """A file of JSON lines; the first line holds the format.  Without a path, nothing is written.

    If the disk is full, rows are queued and written with a later row: the first failure logs an alarm, the others are
    counted.  The file stays open, so that it can be restored if it is deleted; ``mend`` then restores what else is
    missing in its folder.
    """

    path: Path | None = None
    log: Callable[[str], None] = lambda text: None
    mend: Callable[[], None] = lambda: None
    folder: WrittenFolder = Factory(lambda made: WrittenFolder((made.path or Path()).parent), takes_self=True)
    waiting: list[str] = field(factory=list, init=False)
    _last: str = field(default="", init=False)  # the newest line
    _late: int = field(default=0, init=False)  # rows that were queued
    _doubtful: bool = field(default=False, init=False)  # it is unknown how much of the file is on the disk
    _handle: int = field(default=-1, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)

    def __attrs_post_init__(self) -> None:
        """Create the file, or continue after its last complete line."""
        if self.path is None:
            return
        whole, end = _complete(self.path) if os.path.lexists(self.path) else (0, "")
        with self.folder.open() as folder:
            self._handle = _open_file(folder / self.path.name, os.O_CREAT)
        weakref.finalize(self, os.close, self._handle)  # close it when the last writer is gone
        if whole < self.size:
            os.ftruncate(self._handle, whole)
        with self._gate:
            self._last = end
            for line in self._begin(empty=not whole):
                self._take(line)
            self._write()

    def _begin(self, empty: bool) -> Sequence[str]:
        """Return the lines that the file lacks; they are appended."""
        return ('{"format": 1}',) if empty else ()

    @property
    def is_kept(self) -> bool:
        """Return whether there is a file."""
        return self.path is not None

    @property
    def is_behind(self) -> bool:
        """Return whether rows are queued."""
        return bool(self.waiting)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        if self.path is not None:
            with self._gate:
                self._take(self._line(row), row)
                self._write()

    @property
    def size(self) -> int:
        """Return the bytes of the file; 0 without one."""
        return 0 if self.path is None else os.fstat(self._handle).st_size

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Replace the contents of the file by others, all of them or none."""
        assert self.path is not None
        with self._gate:
            try:
                self._renew(self.path, [change(b"".join(_blocks(self._handle)))])
            except (OSError, SigmaStateError) as error:
                self._alarm(error)

    def _line(self, row: Mapping[str, Any]) -> str:
        return json.dumps(strict(row))

    def _take(self, line: str, row: Mapping[str, Any] | None = None) -> None:
        self.waiting.append(f"{line}\n")
        self._last = line

    def _write(self) -> str | None:
        """Write all queued rows, or return why they cannot be written."""
        assert self.path is not None
        try:
            if self._doubtful or not _leads(self.path, self._handle):
                self._put_back(self.path)
            _add(self._handle, "".join(self.waiting).encode())
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
                sync_folder(folder)
                os.dup2(copy, self._handle, inheritable=False)  # also for a thread that is syncing it
            finally:
                os.close(copy)


@define(eq=False)
class JournalFile(Lines, storing.Journal):
    """The journal: a hash chain of lines, shared by the trainers of a run; one sync covers the rows of all of them."""

    configuration: str = ""  # the hash of config.toml
    continued: JournalExcerpt | None = None  # of a file from which it continues
    _base: Bookmark = field(default=START, init=False)  # of a resume while this session replays
    _end: Bookmark = field(default=START, init=False)  # of the newest line
    _bookmarks: deque[Bookmark] = field(factory=lambda: deque(maxlen=BOOKMARKS), init=False)
    _recent: deque[str] = field(factory=deque, init=False)  # the newest lines
    _bytes: int = field(default=0, init=False)  # of the newest lines
    _count: int = field(default=0, init=False)  # of all lines since the file was opened, queued ones included
    _synced: int = field(default=0, init=False)  # of these, on the disk
    _saved: dict[str, int] = field(factory=dict, init=False)  # by trainer: lines before its last checkpoint
    _syncing: threading.Lock = field(factory=threading.Lock, init=False)
    _unsynced: int = field(default=0, init=False)  # bytes added since the last sync began
    _began: float = field(factory=time.monotonic, init=False)  # when the last sync began

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row; a thread syncs the file from time to time, so that few lines are ever not on the disk."""
        super().append(row)
        size, seconds = MOST_LATE
        if self._unsynced > size or (self._unsynced and time.monotonic() - self._began > seconds):
            self._note_sync()
            in_thread(self.durable, "sigma-journal", daemon=False)

    def _note_sync(self) -> None:
        self._unsynced, self._began = 0, time.monotonic()

    def _begin(self, empty: bool) -> Sequence[str]:
        part, self.continued = self.continued, None
        if part is None:
            return (first_line(self.configuration),) if empty else ()
        self._base, self._end = part.start, part.end()
        return part.more

    def _line(self, row: Mapping[str, Any]) -> str:
        return chain_row(hash_of(self._last), encode_row(row))

    def _take(self, line: str, row: Mapping[str, Any] | None = None) -> None:
        super()._take(line)
        self._count += 1
        self._recent.append(line)
        self._bytes += len(line)
        self._unsynced += len(line)
        self._end = self._end.advance(line, row)
        if self._end.offset - (self._bookmarks or [self._base])[-1].offset >= EVERY:
            self._bookmarks.append(self._end)
        while self._count - len(self._recent) < self._synced and self._bytes > MOST_BYTES:
            self._bytes -= len(self._recent.popleft())

    def chain(self, trainer: str, place: int = -1) -> dict[str, Any]:
        """Return the end of the journal for a checkpoint: its newest hash, and the lines since the previous checkpoint.

        The bookmark is the newest one at or before a ``place`` among the rows of the trainer.

        Lines that may not be on the disk are included, of the others only the newest ``MOST_BYTES``; of a disk that
        takes no more, the newest ``LONGEST`` bytes.
        """
        with self._gate:
            start = len(self._recent) - self._count + min(self._saved.get(trainer, 0), self._synced)
            self._saved[trainer] = self._count
            rows = _newest([*self._recent][max(0, start) :], LONGEST)
            bookmark = [self._base, *(mark for mark in self._bookmarks if mark.rows.get(trainer, 0) <= place)][-1]
            end = {"configuration": self.configuration, "head": hash_of(self._last)}
            return {**end, "rows": rows, "bookmark": asdict(bookmark)}

    # -- on the disk ---------------------------------------------------------------------------------------------------
    def durable(self) -> SigmaStateError | None:
        """Restore missing files, and wait until all rows so far are on the disk; return the error on failure."""
        with self._gate:
            self._note_sync()
            wanted, why = self._count, None if self.path is None else self._write()
        if why is not None:
            return self._unwritten(why)
        with self._syncing:  # another thread's sync has often covered these rows meanwhile
            count = self._count - len(self.waiting)
            if self._synced < wanted:
                try:
                    os.fsync(self._handle)
                except OSError as error:
                    self._doubtful = True
                    return self._unwritten(self._alarm(error))
                self._synced = count
        return None

    def _unwritten(self, why: str) -> SigmaStateError:
        rows = len(self.waiting) or self._count - self._synced
        return SigmaStateError(
            f"{self.path}: the last {rows} rows cannot be written, and would be lost in a crash, though applied: {why}"
        )


def _newest(lines: list[str], most: int) -> list[str]:
    """Return the last lines, of at most so many bytes."""
    kept, size = len(lines), 0
    while kept and (size := size + len(lines[kept - 1])) <= most:
        kept -= 1
    return lines[kept:]


def _complete(path: Path) -> tuple[int, str]:
    """Return the bytes of the complete lines of a file, and the last characters of the last one."""
    size, count = path.lstat().st_size, 1 << 12
    while True:
        start = max(0, size - count)
        data = get_bytes(path, start=start)
        end = data.rfind(b"\n")
        if end >= 18 or not start:  # a hash and what closes a line
            return start + end + 1, data[max(0, end - 18) : max(0, end)].decode(errors="replace")
        count *= 16


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
