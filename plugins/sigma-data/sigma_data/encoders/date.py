"""Encode dates and times by their parts, which come again, and by the time that has passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from sigma_data.encoders.columns import (
    EMPTY,
    FIX,
    are_distinct,
    cast,
    decode,
    is_missing,
    read_batches,
    refuse,
    refuse_missing,
)
from sigma_data.preprocessors.standardise import RowMoments
from sigma_kernel import Encoder, SigmaDataError
from sigma_kernel.settings import and_, deep_iterable, in_, must

CYCLES = {"month": 12, "day": 1, "weekday": 7, "hour": 24}  # parts and their length; days of a month are shares of it
PARTS = (*CYCLES, "weekend", "elapsed")
Part = Literal["month", "day", "weekday", "hour", "weekend", "elapsed"]
MICROSECONDS = 86_400_000_000  # of a day
DOTTED = r"^\s*\d{1,2}\.\d{1,2}\.\d{4}([T ]\d|\s*$)"  # day, month and year, as in many countries
PADDED = r"^\s*(\d\d)\.(\d\d)\.(\d{4})"
OFFSET = r"[T ]\d{2}.*(Z|[+-]\d{2}(:?\d{2})?)$"
REMEDY = "set missing = 'zero', or leave the row out"
SATURDAY = 5  # days from Monday


def _is_zone(name: Any) -> bool:
    try:
        return not name or bool(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


@frozen
class DateEncoder(Encoder):
    """Encode a date as sine and cosine of its parts, whether it is a weekend, and the days that have passed.

    Parts are the month of the year, the day of the month, the day of the week and the hour of the day, with minutes and
    seconds.  By default, all that differ among the training rows are encoded.  The time that has passed has mean 0 and
    deviation 1 in the training rows.

    Words are dates as in ISO 8601: ``2024-03-31``, ``2024-03-31 14:30``, ``2024-03-31T14:30:00.5+02:00``; or with
    points between day, month and year: ``31.3.2024``, ``31.03.2024 14:30``.

    Args:
        parts: What to encode, of ``month``, ``day``, ``weekday``, ``hour``, ``weekend`` and ``elapsed``.
        zone: Time zone of the parts, such as ``Europe/Berlin``, for times that state an offset or a time zone. By
            default, it is that of the column, or UTC if words state offsets. Other times are taken as they are.
        missing: Whether all numbers of a missing value are 0, or it is an error.
        indicator: Add a number that is 1 where the value is missing, else 0.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("date",)
    parts: tuple[Part, ...] = field(
        default=(), converter=tuple, validator=and_(deep_iterable(in_(PARTS)), must(are_distinct, "parts that differ"))
    )
    zone: str = field(default="", validator=must(_is_zone, "the name of a time zone, such as Europe/Berlin"))
    missing: Literal["refuse", "zero"] = field(default="zero", validator=in_(("refuse", "zero")))
    indicator: bool = False
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``parts``, the ``zone``, whether words have an ``offset``, ``centre`` and ``width`` of days."""
        form = (_state_offset(columns), self.zone or _column_zone(columns))
        ends = dict.fromkeys(CYCLES, (np.inf, -np.inf))
        moments = []
        for days in read_batches(columns, lambda column: self._read_days(column, *form)):
            there = days[~np.isnan(days)]
            if len(there):
                values = _cycles(there)
                ends = {
                    part: (min(low, values[part].min()), max(high, values[part].max()))
                    for part, (low, high) in ends.items()
                }
                moments.append(RowMoments.from_block(there))
        if not moments:
            raise SigmaDataError(EMPTY)
        centre, width = reduce(RowMoments.merge, moments).scale
        differ = {part for part, (low, high) in ends.items() if low < high}
        differ |= {"weekend"} if "weekday" in differ else set()
        parts = self.parts or [part for part in PARTS if part in differ | {"elapsed"}]
        return {"parts": [*parts], "offset": form[0], "zone": form[1], "centre": float(centre), "width": float(width)}

    def _read_days(self, column: Any, with_offset: bool, zone: str) -> np.ndarray:
        """Return the local time in days since 1970, NaN where there is no value."""
        column = decode(column)
        missing = is_missing(column)
        if self.missing == "refuse":
            refuse_missing(missing, column, REMEDY)
        local = _local_times(column, with_offset, zone)
        microseconds = pc.fill_null(pc.cast(local, pa.int64()), 0).to_numpy(zero_copy_only=False)
        whole, rest = np.divmod(microseconds, MICROSECONDS)
        return np.where(missing, np.nan, whole + rest / MICROSECONDS)

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the parts, in the order of their names."""
        days = self._read_days(column, state["offset"], state["zone"])
        missing = np.isnan(days)
        days = np.where(missing, 0.0, days)
        cycles = _cycles(days)
        columns: list[np.ndarray] = []
        for part in state["parts"]:
            if part in CYCLES:
                columns += [np.sin(2 * np.pi * cycles[part]), np.cos(2 * np.pi * cycles[part])]
            elif part == "weekend":
                columns.append(cycles["weekday"] >= SATURDAY / CYCLES["weekday"])
            else:
                columns.append((days - state["centre"]) / state["width"])
        encoded = np.where(missing[:, None], 0.0, np.column_stack(columns))
        return np.column_stack([encoded, missing]) if self.indicator else encoded

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the column with each part, of those that come again sine and cosine."""
        names: list[str] = []
        for part in state["parts"]:
            names += (
                [f"{column} {part} {wave}" for wave in ("sine", "cosine")] if part in CYCLES else [f"{column} {part}"]
            )
        return (*names, f"{column} is missing") if self.indicator else tuple(names)


def _cycles(days: np.ndarray) -> dict[str, np.ndarray]:
    """Return each part of times in days since 1970 as the share of its cycle, from 0 to below 1."""
    date = np.floor(days).astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    length = ((month + 1).astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64)
    return {
        "month": month.astype(np.int64) % 12 / CYCLES["month"],
        "day": (date - month.astype("datetime64[D]")).astype(np.int64) / length,
        "weekday": (date.astype(np.int64) + 3) % 7 / CYCLES["weekday"],  # 1970 began on a Thursday; 0 is Monday
        "hour": days - np.floor(days),
    }


def _state_offset(columns: Iterable[Any]) -> bool:
    """Return whether the first word of a column states an offset from UTC."""
    for column in map(decode, columns):
        if not _is_words(column):
            return False
        if first := column.drop_null()[:1]:
            return bool(pc.match_substring_regex(first, OFFSET)[0].as_py())
    return False


def _column_zone(columns: Iterable[Any]) -> str:
    """Return the time zone of a column of times; UTC if it has none."""
    return next((getattr(column.type, "tz", None) or "UTC" for column in columns), "UTC")


def _is_words(column: Any) -> bool:
    kind = column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def as_iso(column: Any) -> Any:
    """Return a column of words with dates such as ``31.3.2024 14:30`` as those of ISO 8601; other words as they are."""
    if not pc.any(pc.match_substring_regex(column, DOTTED)).as_py():
        return column
    for pattern, written in ((r"^\s*(\d)\.", r"0\1."), (r"^\s*(\d\d)\.(\d)\.", r"\1.0\2."), (PADDED, r"\3-\2-\1")):
        column = pc.replace_substring_regex(column, pattern, written)
    return column


def read_times(column: Any) -> Any:
    """Return a column of dates, times or words as timestamps of microseconds, in UTC if words state offsets."""
    return _read_times(decode(column), _state_offset([column]))


def _read_times(column: Any, with_offset: bool) -> Any:
    if _is_words(column):
        text = pc.replace_substring_regex(pc.utf8_trim_whitespace(as_iso(column)), r"(\.\d{6})\d+", r"\1")
        wanted = pa.timestamp("us", "UTC" if with_offset else None)
        how = "with its offset from UTC, like those before it" if with_offset else "without an offset from UTC"
        problem = f"{{}} is no date of the form 2024-03-31 or 2024-03-31 14:30:00, {how}. {FIX}"
        return cast(text, wanted, problem)
    if pa.types.is_timestamp(column.type):
        return pc.cast(column, pa.timestamp("us", column.type.tz), safe=False)
    if pa.types.is_date(column.type) or pa.types.is_null(column.type):
        return pc.cast(column, pa.timestamp("us"))
    refuse(~is_missing(column), column, f"{{}} is no date. {FIX}")
    return pa.nulls(len(column), pa.timestamp("us"))


def _local_times(column: Any, with_offset: bool, zone: str) -> Any:
    """Return a column of dates, times or words as local times, timestamps of microseconds."""
    times = _read_times(column, with_offset)
    if times.type.tz is None:
        return times
    return pc.local_timestamp(pc.cast(times, pa.timestamp("us", zone)))
