"""The files that grow while a run goes on: ``journal.jsonl`` and ``metrics.jsonl``.

The journal holds every change from outside, with the moment at which it acted.  The metrics hold at most ten rows a
second, plus one for every epoch; what lies between two rows is kept as minimum and maximum.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.errors import SigmaCheckpointError, SigmaError, SigmaStateError, said
from sigma_kernel.training import commands
from sigma_kernel.training.folder import get_bytes

FORMAT = 1
WRITING = threading.Lock()  # trainers share the files
COUNT, TEXT = (int, type(None)), str
HEAD: dict[str, Any] = {"trainer": TEXT, "iteration": int, "epoch": int}
EVENTS: dict[str, dict[str, Any]] = {  # what belongs to those rows that are read again
    "begin": {"epochs": COUNT, "iterations": COUNT},
    "fired": {"hook": TEXT, "scope": TEXT},
    "digest": {"state": dict, "losses": TEXT},
    "resumed": {"from": int, "at": COUNT, "edits": list},
}


@define(eq=False)
class Lines:
    """A file of JSON lines; the first says which format they have.  Without a path, nothing is written.

    A row for which there is no room on the disk waits for the next one, and for room; that it does is told.
    """

    path: Path | None = None
    tell: Callable[[str], None] = lambda text: None
    waiting: list[str] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        """Begin the file, or go on after its last whole line."""
        if self.path is None:
            return
        there = get_bytes(self.path) if os.path.lexists(self.path) else b""
        whole = there.rfind(b"\n") + 1
        if whole < len(there):
            os.truncate(self.path, whole)
        if not whole:
            self.append({"format": FORMAT})

    def append(self, row: Mapping[str, Any], sync: bool = False) -> None:
        """Add a row; with ``sync``, it is on the disk when this returns."""
        if self.path is None:
            return
        with WRITING:
            self.waiting.append(encoded(row) + "\n")
            if (error := self._write(sync)) is not None and len(self.waiting) == 1:
                self.tell(f"ALARM: {self.path}: cannot be written: {error.strerror}. Make room. Training goes on.")

    def flush(self) -> None:
        """Write what waits; SigmaStateError where there is still no room for it."""
        with WRITING:
            if self.waiting and (error := self._write(sync=True)) is not None:
                raise SigmaStateError(
                    f"{self.path}: the last {len(self.waiting)} rows cannot be written: {error.strerror}. Make room "
                    "before the next run; this one cannot be replayed to its end."
                )

    def _write(self, sync: bool) -> OSError | None:
        """Write all that waits, or return why it has to wait on."""
        assert self.path is not None  # else nothing waits
        try:
            _add(self.path, "".join(self.waiting).encode(), sync)
            self.waiting.clear()
        except OSError as error:
            return error
        return None


def _add(path: Path, data: bytes, sync: bool) -> None:
    """Add all of it to a file, or nothing."""
    with path.open("ab", buffering=0) as file:
        end = file.tell()
        try:
            while data:
                data = data[file.write(data) :]
            if sync:
                os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise


def rows(path: Path, trainer: str) -> list[dict[str, Any]]:
    """Return the rows of one trainer, each with its ``place``; a last line that a crash cut off does not count.

    Raises SigmaCheckpointError for what is no journal, or holds a command that cannot be given.
    """
    try:
        lines = get_bytes(path).decode().split("\n")[:-1]
    except ValueError as error:
        raise SigmaCheckpointError(f"{path}: is damaged: {error}. Restore the file from a copy.") from error
    if lines and lines[0] != encoded({"format": FORMAT}):
        raise SigmaCheckpointError(f"{path}: has no format that this version reads. Update sigma-kernel.")
    found = [_row(f"{path}:{number}", line) for number, line in enumerate(lines[1:], 2)]
    return [{**row, "place": place} for place, row in enumerate(row for row in found if row["trainer"] == trainer)]


def _row(place: str, line: str) -> dict[str, Any]:
    """Return the row that a line holds, with all that belongs to it."""
    try:
        row: dict[str, Any] = json.loads(line)
        wanted = HEAD if "command" in row else {**HEAD, "event": TEXT, **EVENTS.get(row["event"], {})}
        if wrong := [name for name, kinds in wanted.items() if not isinstance(row.get(name), kinds)]:
            raise ValueError(f"{', '.join(wrong)} missing or wrong")
        if "command" in row:
            commands.from_dict(row)
    except (SigmaError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise SigmaCheckpointError(
            f"{place}: is no row of a journal: {said(error)} Restore the file from a copy."
        ) from error
    return row


def encoded(row: Mapping[str, Any]) -> str:
    """Return a row as one line of JSON."""
    return json.dumps(strict(row), default=_plain)


def strict(value: Any) -> Any:
    """Return a value as every reader of JSON takes it: a number that is not finite becomes None."""
    if isinstance(value, Mapping):
        return {name: strict(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


@define(eq=False)
class Samples:
    """Thin out what is measured to rows for people: of each name the last value, the least and the greatest."""

    lines: Lines
    interval: float = 0.1
    now: Callable[[], float] = time.monotonic
    _last: float = field(default=-np.inf, init=False)
    _row: dict[str, dict[str, float]] = field(factory=dict, init=False)

    def add(self, measured: Mapping[str, np.ndarray]) -> None:
        """Take one or several new values of each name."""
        if self.lines.path is None:
            return
        for name, values in measured.items():
            old = self._row.get(name, {"low": np.nan, "high": np.nan})
            low, high = np.fmin(old["low"], np.fmin.reduce(values)), np.fmax(old["high"], np.fmax.reduce(values))
            self._row[name] = {"last": float(values[-1]), "low": float(low), "high": float(high)}

    def write(self, head: Mapping[str, Any], force: bool = False) -> None:
        """Write a row, if there is something new and it is time, or if forced to."""
        if self._row and (force or (not self.lines.waiting and self.now() - self._last >= self.interval)):
            self.lines.append({**head, "values": self._row})
            self._row, self._last = {}, self.now()
