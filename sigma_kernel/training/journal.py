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
            file.write(json.dumps(row, default=_plain) + "\n")
            if sync:
                file.flush()
                os.fsync(file.fileno())


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


@define(eq=False)
class Samples:
    """Thin out what is measured at every iteration to rows that a person can read."""

    lines: Lines
    interval: float = 0.1
    now: Callable[[], float] = time.monotonic
    _last: float = field(default=-np.inf, init=False)
    _low: dict[str, float] = field(factory=dict, init=False)
    _high: dict[str, float] = field(factory=dict, init=False)

    def add(self, head: Mapping[str, Any], ring: Mapping[str, np.ndarray], force: bool = False) -> None:
        """Take the records of a burst; write a row if it is time, or if forced to."""
        if self.lines.path is None:
            return
        for name, values in ring.items():
            self._low[name] = min(self._low.get(name, np.inf), float(values.min()))
            self._high[name] = max(self._high.get(name, -np.inf), float(values.max()))
        if ring and (force or self.now() - self._last >= self.interval):
            self._write(head, {name: float(values[-1]) for name, values in ring.items()})

    def _write(self, head: Mapping[str, Any], last: Mapping[str, float]) -> None:
        rows = {name: {"last": value, "low": self._low[name], "high": self._high[name]} for name, value in last.items()}
        self.lines.append({**head, "values": rows})
        self._low, self._high, self._last = {}, {}, self.now()
