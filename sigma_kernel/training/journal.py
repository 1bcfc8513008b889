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

FORMAT = 1


@define(eq=False)
class Lines:
    """A file of JSON lines; the first says which format they have.  Without a path, nothing is written."""

    path: Path | None = None
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        """Begin the file."""
        if self.path is not None and not self.path.exists():
            self.append({"format": FORMAT})

    def append(self, row: Mapping[str, Any], sync: bool = False) -> None:
        """Add a row; with ``sync``, it is on the disk when this returns."""
        if self.path is None:
            return
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(encoded(row) + "\n")
            if sync:
                file.flush()
                os.fsync(file.fileno())


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
        if self._row and (force or self.now() - self._last >= self.interval):
            self.lines.append({**head, "values": self._row})
            self._row, self._last = {}, self.now()
