"""When points were measured: the time of day of each, by the times in the journal of its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from attrs import evolve

from sigma_kernel.curves import BranchedCurves
from sigma_kernel.periods import Period, Periods

TIME = "time"  # the axis
STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400]  # seconds
DAY = 86400


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


def format_time(time: float) -> str:
    """Return a time in ISO 8601, in UTC, to the millisecond; empty for NaN."""
    return "" if np.isnan(time) else date_of(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def date_of(time: float) -> datetime:
    """Return a time as a date in UTC."""
    return datetime.fromtimestamp(time, UTC)


def time_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Return at most ``most`` round times of day in UTC, each with its label: the day as well, where there are more."""
    step = next((each for each in STEPS if (high - low) / each <= most), 0) or -(-(high - low) // (most * DAY)) * DAY
    first, form = -(-low // step) * step, "%H:%M:%S" if step < 60 else "%H:%M"
    form = form if date_of(low).date() == date_of(high).date() else f"%m-%d {form}" if step < DAY else "%Y-%m-%d"
    return [(at, date_of(at).strftime(form)) for at in np.arange(first, high + step / 1e6, step).tolist()]
