"""Times of day on an axis, and as text."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

TIME = "time"  # the axis
STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400]  # seconds
DAY = 86400


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
