"""Append to the journal of a run: every change from outside, with the moment at which it was applied.

It is a hash chain of lines.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, define, field

from sigma_kernel.contracts import storing
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.plain import strict
from sigma_kernel.threads import in_thread
from sigma_store.appending import AppendedFile
from sigma_store.chain import START, Bookmark, JournalExcerpt, chain_row, encode_row, first_line, hash_of
from sigma_store.files import get_bytes

MOST_BYTES = 1 << 20  # of lines already on the disk, kept for the manifest of the next checkpoint
EVERY = 1 << 20  # bytes of lines between two bookmarks, from which a resume can read
BOOKMARKS = 8  # kept in memory, in addition to the first
MOST_LATE = 1 << 20, 1.0  # bytes not synced, and seconds since the last sync, after which the next row begins one
LONGEST = 4 << 20  # bytes of lines in a manifest, even if the disk takes none: the other fields need room too


# -- writing -----------------------------------------------------------------------------------------------------------
@define(eq=False)
class Lines(AppendedFile):
    """A file of JSON lines; the first line holds the format."""

    _last: str = field(default="", init=False)  # the newest line

    def _measure(self, path: Path) -> int:
        whole, self._last = _complete(path)
        return whole

    def _begin(self, empty: bool) -> None:
        if empty:
            self._take('{"format": 1}')

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        if self.path is not None:
            with self._gate:
                self._take(self._line(row), row)
                self._write()

    def _line(self, row: Mapping[str, Any]) -> str:
        return json.dumps(strict(row))

    def _take(self, line: str, row: Mapping[str, Any] | None = None) -> None:
        self.waiting.append(f"{line}\n".encode())
        self._last = line


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

    def _begin(self, empty: bool) -> None:
        part, self.continued = self.continued, None
        if part is None:
            more: Sequence[str] = [first_line(self.configuration)] if empty else []
        else:
            self._base, self._end, more = part.start, part.end(), part.more
        for line in more:
            self._take(line)

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
