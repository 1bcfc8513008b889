"""When a trainer trained: uninterrupted periods, and the pauses between them, from the rows of the journal.

With them, each point of a curve has a time of day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.curves import BranchedCurves
from sigma_kernel.settings import is_finite

_SLACK = 1.0  # seconds by which the time of a row may differ from what its period says
_BACK = ("rewind", "reset")


@frozen
class Period:
    """Uninterrupted training on a branch: ``second`` of training was at ``time``, and at least ``seconds`` followed.

    ``time`` is in seconds since 1970, UTC.  Of several periods of a branch, the last one that begins at or before a
    second has it: a resume repeats what came after its checkpoint.
    """

    branch: int
    second: float
    time: float
    seconds: float = 0.0


@define(eq=False)
class Periods:
    """The periods in which a trainer trained, in their order; rows without a time, of earlier versions, are skipped.

    Training runs at once after a row and then pauses, as ``step`` does: a row that comes later than the seconds of
    training say begins a period.
    """

    branch: int = 0
    found: list[Period] = field(factory=list)

    def take(self, row: Mapping[str, Any]) -> None:
        """Take the next row of the trainer."""
        time: Any = row.get("time")
        second: Any = row.get("seconds")
        if is_finite(time) and is_finite(second):
            self._reach(second, time)
        if row.get("command") in _BACK:
            self.branch = row.get("branch", self.branch)
            if is_finite(time):
                self._begin(row.get("to_seconds", 0.0), time)

    def _reach(self, second: float, time: float) -> None:
        if self.found:
            last = self.found[-1]
            self.found[-1] = last = evolve(last, seconds=max(last.seconds, second - last.second))
        if not self.found or abs(time - last.time - (second - last.second)) > _SLACK:
            self._begin(second, time)

    def _begin(self, second: float, time: float) -> None:
        """Begin a period, in place of one in which nothing was trained; a clock that was set back stands still."""
        if self.found and not self.found[-1].seconds:
            self.found.pop()
        end = self.found[-1].time + self.found[-1].seconds if self.found else time
        self.found = [*self.found, Period(self.branch, second, max(time, end))]


def read_periods(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Period]]:
    """Return when each trainer trained, from the rows of a journal."""
    trainers = dict[str, Periods]()
    for row in rows:
        if isinstance(row.get("trainer"), str):
            trainers.setdefault(row["trainer"], Periods()).take(row)
    return {trainer: own.found for trainer, own in trainers.items() if own.found}


def add_times(measured: BranchedCurves, periods: Sequence[Period]) -> BranchedCurves:
    """Return curves whose seconds are the times of day of their points, in seconds since 1970 (UTC).

    NaN for those of which no time is known.
    """
    lines = {
        name: {
            at: evolve(curve, seconds=find_times(periods, measured.branches[at].number, curve.seconds))
            for at, curve in own.items()
        }
        for name, own in measured.lines.items()
    }
    return evolve(measured, lines=lines)


def find_times(periods: Sequence[Period], branch: int, seconds: np.ndarray) -> np.ndarray:
    """Return when seconds of training were on a branch, in seconds since 1970; NaN before the first that is known."""
    own = list[Period]()
    for period in periods:
        if period.branch == branch:  # what a resume repeats is no longer there
            own = [*(earlier for earlier in own if earlier.second < period.second), period]
    starts = np.array([period.second for period in own])
    begun = np.array([period.time for period in own])
    place = np.searchsorted(starts, seconds, "right") - 1
    if not own:
        return np.full(len(seconds), np.nan)
    ends = np.array([*(after.time for after in own[1:]), np.inf])  # no point is later than the next ones
    times = np.minimum(begun[place] + seconds - starts[place], ends[place])
    return np.where(place < 0, np.nan, times)
