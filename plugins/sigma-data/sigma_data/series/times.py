"""Times of a series as whole numbers, their regular step, and rows that follow each other by it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from sigma_data.encoders.columns import decode, read_numbers
from sigma_data.encoders.date import read_times
from sigma_kernel import SigmaDataError

Unit = Literal["row", "number", "microsecond", "month", "month end"]
MONTHS = ("month", "month end")
LAST = 31  # day of a month
DAY = 86_400_000_000  # microseconds
WORDS = ((7 * DAY, "week"), (DAY, "day"), (3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second"))


@frozen
class Spacing:
    """The regular distance of two times: ``size`` units; ``local`` if it is one of the wall clock, such as a day.

    Months come to the same day, or to the last one of a shorter month; a ``month end`` to the last day of each.  With
    a ``day``, months come to this one, also from the last day of a shorter month.
    """

    unit: Unit
    size: int = 1
    local: bool = False
    day: int = 0

    def to_plain(self) -> list[Any]:
        """Return the settings as plain values, in their order."""
        return [self.unit, self.size, self.local, *([self.day] if self.day else [])]

    def positions(self, times: Any) -> np.ndarray:
        """Return times as int64, of which neighbours differ by ``size``."""
        values = to_integers(_wall_clock(times) if self.local else times)
        if self.unit in MONTHS:
            return values.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        return values

    def shift(self, times: Any, steps: int | np.ndarray) -> Any:
        """Return the times that come so many steps later, in the same form; by a wall clock, what that shows then."""
        if self.unit == "row" or not np.any(steps):
            return times
        values = to_integers(_wall_clock(times) if self.local else times)
        if self.unit in MONTHS:
            values = _add_months(values, steps * self.size, LAST if self.unit == "month end" else self.day)
        else:
            values = values + steps * self.size
        if pa.types.is_integer(times.type):
            return pa.array(values)
        return pa.array(values, pa.timestamp("us", None if self.local else times.type.tz))

    def advance(self, times: Any, steps: np.ndarray) -> Any:
        """Return each time so many steps later, in the same zone.

        Of an hour that a wall clock shows twice, it is the first; of one that it skips, the moment after it.
        """
        later = self.shift(times, steps)
        if later.type != times.type:
            later = pc.assume_timezone(later, times.type.tz, ambiguous="earliest", nonexistent="latest")
        return pc.if_else(pa.array(steps == 0), times, later)

    def __str__(self) -> str:
        if self.unit != "microsecond":
            return "row" if self.unit == "row" else f"{self.size} month" if self.unit in MONTHS else f"{self.size}"
        size, word = next(((size, word) for size, word in WORDS if not self.size % size), (1, "microsecond"))
        return f"{self.size // size} {word}"


def read_column_of_times(column: Any) -> Any:
    """Return a column of whole numbers, dates, times or words for these as int64 or timestamps of microseconds."""
    column = decode(column)
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return read_times(column)
    values = read_numbers(column)
    wrong = np.flatnonzero(values != np.rint(values))
    if len(wrong):
        raise SigmaDataError(
            f"{values[wrong[0]]} is no whole number of steps. Count steps, or give dates.", row=wrong[0]
        )
    return pa.array(values.astype(np.int64))


def to_integers(times: Any) -> np.ndarray:
    """Return times as int64; of timestamps, microseconds since 1970."""
    return np.asarray(pc.cast(times, pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def infer_step(times: Any, groups: np.ndarray) -> Spacing:
    """Return the step that most neighbours within a group have; of several equally frequent ones, the smallest.

    ``times`` are sorted within each group.  Times on one day of the month, or on the last one of each or of those that
    lack the day, are months apart, and times at one hour of the day are days apart on the wall clock of their zone.
    """
    same = groups[1:] == groups[:-1]
    unit: Unit = "number" if pa.types.is_integer(times.type) else "microsecond"
    clock = times if unit == "number" else _wall_clock(times)
    local = clock is not times and len(np.unique(to_integers(clock) % DAY)) == 1
    values = to_integers(clock if local else times)
    apart = np.diff(values)[same]
    if not len(apart):
        return Spacing(unit)
    size = _most_frequent(apart)
    months, day = _find_months(values) if unit == "microsecond" and size >= 28 * DAY else (None, 0)
    if months is not None:
        numbers = values.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
        return Spacing(months, _most_frequent(np.diff(numbers)[same]), local, day)
    return Spacing(unit, size, local)


def _find_months(values: np.ndarray) -> tuple[Unit | None, int]:
    """Return the unit of times at one moment of their months, counted from the beginning or from the end.

    The number is the day, of times on the last day of months that lack it, else 0.
    """
    moments = values.astype("datetime64[us]")
    dates, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
    if len(np.unique(moments - months)) == 1:
        return "month", 0
    if len(np.unique(moments - dates)) > 1:
        return None, 0
    days = (dates - months).astype(np.int64) + 1
    lasts = ((months + 1).astype("datetime64[D]") - months).astype(np.int64)
    if (days == lasts).all():
        return "month end", 0
    fits = (days == np.minimum(days.max(), lasts)).all()
    return ("month", int(days.max())) if fits else (None, 0)


def _add_months(values: np.ndarray, count: int | np.ndarray, day: int) -> np.ndarray:
    """Return times so many months later: on a day, by default the same, or on the last one of a shorter month."""
    days, rest = np.divmod(values, DAY)
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    last = (months + count + 1).astype("datetime64[D]") - 1
    wanted = (months + count).astype("datetime64[D]") + (np.timedelta64(day - 1, "D") if day else dates - months)
    return np.asarray(np.minimum(wanted, last).astype(np.int64) * DAY + rest)


def _most_frequent(values: np.ndarray) -> int:
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[np.argmax(counts)])


def _wall_clock(times: Any) -> Any:
    if pa.types.is_integer(times.type) or times.type.tz is None:
        return times
    return pc.local_timestamp(times)
