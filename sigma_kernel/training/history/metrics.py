"""Record metrics: the history in memory, and the rows of ``metrics.jsonl``.

The file has at most ten rows a second, plus one for every epoch, with the last, the least and the greatest of the
values since the previous row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.training.history.journal import Lines


@define(eq=False)
class History(Mapping[str, np.ndarray]):
    """Measured values by name: ``training.*`` once an iteration, others once each time they were published."""

    _parts: dict[str, list[np.ndarray]] = field(factory=dict)

    def record(self, measured: Mapping[str, np.ndarray]) -> None:
        """Add one or several values of each name."""
        for name, values in measured.items():
            self._parts.setdefault(name, []).append(values)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.concatenate(self._parts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


@define(eq=False)
class Samples:
    """Downsample measurements to rows: the last, the least and the greatest value of each name."""

    lines: Lines
    interval: float = 0.1
    now: Callable[[], float] = time.monotonic
    _last: float = field(default=-np.inf, init=False)
    _row: dict[str, dict[str, float]] = field(factory=dict, init=False)

    def add(self, measured: Mapping[str, np.ndarray]) -> None:
        """Add one or several new values of each name."""
        if self.lines.path is None:
            return
        for name, values in measured.items():
            old = self._row.get(name, {"low": np.nan, "high": np.nan})
            low, high = np.fmin(old["low"], np.fmin.reduce(values)), np.fmax(old["high"], np.fmax.reduce(values))
            self._row[name] = {"last": float(values[-1]), "low": float(low), "high": float(high)}

    def write(self, head: Mapping[str, Any], force: bool = False) -> None:
        """Write a row if there are new values, and either the interval has passed or ``force`` is set."""
        if self._row and (force or (not self.lines.waiting and self.now() - self._last >= self.interval)):
            self.lines.append({**head, "values": self._row})
            self._row, self._last = {}, self.now()
