"""The files that grow while a run goes on: ``journal.jsonl`` and ``metrics.jsonl``.

The journal holds every change from outside, with the moment at which it acted, as a chain of lines.  The metrics hold
at most ten rows a second, plus one for every epoch; what lies between two rows is kept as minimum and maximum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.training.history.journal import Lines


# -- metrics -----------------------------------------------------------------------------------------------------------
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
