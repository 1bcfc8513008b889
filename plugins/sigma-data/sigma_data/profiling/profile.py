"""Profile a table: its columns with figures, equal rows, and what is odd, to show to people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from attrs import asdict, field, frozen

from sigma_data.profiling.encoders import choose_encoder
from sigma_data.profiling.kinds import Inferred, Kind, as_floats, count_ticks, count_words, infer_kind, shorten

MOST = 1 << 20  # rows that are looked at
COUNTED = 12  # most frequent values of a column
SHOWN = 5  # of them in a line
SAMPLES = 8  # rows
LARGE = 1e150  # whose square is finite
BARS = 12  # of a small chart
BLOCKS = "▁▂▃▄▅▆▇█"
NUMERIC: tuple[Kind, ...] = ("number", "identifier")


@frozen
class ColumnProfile:
    """One column: its kind with the reason, how many cells are missing and distinct, and its figures.

    ``figures`` are minimum, median, maximum, mean and deviation of numbers, ``lengths`` those of the words in texts;
    ``counts`` the most frequent values, with the number of their rows; ``histogram`` the number of rows in equal parts
    of the range.
    """

    name: str
    inferred: Inferred
    type: str
    rows: int
    missing: int
    distinct: int
    figures: Mapping[str, float] = field(factory=dict)
    counts: tuple[tuple[str, int], ...] = ()
    histogram: tuple[int, ...] = ()
    lengths: Mapping[str, float] = field(factory=dict)

    @property
    def kind(self) -> Kind:
        """Return the kind."""
        return self.inferred.kind

    @property
    def encoder(self) -> dict[str, Any] | None:
        """Return the table of an encoder that suits the column; None if it is left out."""
        chosen = choose_encoder(self.kind, self.rows, self.missing + self.inferred.infinite, self.distinct)
        return {**chosen, "infinite": "missing"} if chosen and self.inferred.infinite else chosen

    def to_json(self) -> dict[str, Any]:
        """Return the column as plain values."""
        own = asdict(self, filter=lambda one, _: one.name not in ("inferred", "counts", "histogram"))
        counts, histogram = [[*pair] for pair in self.counts], [*self.histogram]
        return {**asdict(self.inferred), **own, "counts": counts, "histogram": histogram}

    @property
    def chart(self) -> str:
        """Return the histogram, or the counts, as a chart of one line."""
        counts = self.histogram or tuple(count for _, count in self.counts)
        return draw_bars(counts) if len(counts) > 1 else ""

    @property
    def content(self) -> str:
        """Return what the column holds, on one line."""
        if spread := self.figures or self.lengths:
            unit = " words" if self.lengths else ""
            return f"{spread['minimum']:g} … {spread['median']:g} … {spread['maximum']:g}{unit}"
        return shorten(", ".join(f"{value} ({count})" for value, count in self.counts[:SHOWN]), 60)


@frozen
class Profile:
    """A table: its ``rows``, its columns, how many rows are equal to an earlier one, and the cells of some rows."""

    name: str
    rows: int
    columns: tuple[ColumnProfile, ...]
    duplicates: int = 0
    samples: tuple[tuple[str, ...], ...] = ()

    def __getitem__(self, name: str) -> ColumnProfile:
        return next(column for column in self.columns if column.name == name)

    def table(self) -> Iterator[list[str]]:
        """Yield the rows of a table for people, its header first."""
        yield ["column", "kind", "missing", "distinct", "", "content"]
        for column in self.columns:
            missing = f"{100 * column.missing / column.rows:.1f} %" if column.missing else ""
            yield [shorten(column.name, 60), column.kind, missing, f"{column.distinct:,}", column.chart, column.content]

    def to_json(self) -> dict[str, Any]:
        """Return the profile as plain values."""
        columns = [column.to_json() for column in self.columns]
        about = {"name": self.name, "rows": self.rows, "duplicates": self.duplicates}
        return {**about, "columns": columns, "samples": [[*row] for row in self.samples]}


def profile_table(table: Any, name: str, rows: int | None = None) -> Profile:
    """Return the profile of a table of Arrow, or of the first of so many ``rows``; at most MOST are looked at."""
    looked_at = table.slice(0, MOST)
    columns = tuple(profile_column(column, looked_at[column]) for column in looked_at.column_names)
    samples = draw_samples(looked_at)
    return Profile(name, rows or table.num_rows, columns, count_duplicates(looked_at), samples)


def draw_samples(table: Any) -> tuple[tuple[str, ...], ...]:
    """Return the cells of some rows, evenly spaced, as texts of one line; empty where they are missing."""
    rows = np.unique(np.linspace(0, max(0, table.num_rows - 1), min(SAMPLES, table.num_rows)).astype(int))
    cells = table.take(rows).to_pydict()
    columns = [["" if cell is None else shorten(_round(cell), 120) for cell in column] for column in cells.values()]
    return tuple(zip(*columns, strict=True))


def _round(cell: Any) -> Any:
    return f"{cell:.6g}" if isinstance(cell, float) else cell


def profile_column(name: str, column: Any) -> ColumnProfile:
    """Return the profile of one column."""
    inferred = infer_kind(name, column)
    nested = inferred.kind == "other" and not str(column.type).startswith(("string", "large_string"))
    distinct = inferred.distinct
    if distinct is None:
        distinct = 0 if nested else count_distinct(column)
    numeric = inferred.kind in NUMERIC and _holds_numbers(column)
    figures, histogram = _summarise(as_floats(column)) if numeric else ({}, ())
    lengths: Mapping[str, float] = {}
    if inferred.kind == "text":
        lengths, histogram = _summarise(as_floats(count_words(column)))
    if inferred.kind == "date" and import_module("pyarrow").types.is_temporal(column.type):
        histogram = _summarise(as_floats(count_ticks(column)))[1]
    counts = () if nested or (numeric and distinct > COUNTED) else count_values(column, COUNTED)
    facts = (str(column.type), len(column), column.null_count, distinct)
    return ColumnProfile(name, inferred, *facts, figures, counts, histogram, lengths)


def count_distinct(column: Any) -> int:
    """Return the number of different values that are not missing; of floats by sorting, which takes less time."""
    pc = import_module("pyarrow.compute")
    if str(column.type) == "double":
        return len(np.unique(np.asarray(pc.drop_null(column))))
    return int(pc.count_distinct(column, mode="only_valid").as_py())


def count_values(column: Any, most: int) -> tuple[tuple[str, int], ...]:
    """Return the most frequent values of a column with their numbers of rows; equal numbers in order of the values."""
    pc = import_module("pyarrow.compute")
    counted = pc.value_counts(pc.drop_null(column))
    pairs = [(shorten(row["values"]), row["counts"]) for row in counted.to_pylist()]
    return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:most])


def count_duplicates(table: Any) -> int:
    """Return how many rows are equal to an earlier one; 0 for columns that cannot be compared."""
    pa = import_module("pyarrow")
    names = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    if not names or not table.num_rows:
        return 0
    distinct = table.select(names).group_by(names, use_threads=True).aggregate([]).num_rows
    return int(table.num_rows - distinct)


def draw_bars(counts: Sequence[int]) -> str:
    """Return numbers as bars of one character each."""
    top = max([*counts, 1])
    return "".join(
        " " if not count else BLOCKS[min(len(BLOCKS) - 1, count * len(BLOCKS) // (top + 1))] for count in counts
    )


def _holds_numbers(column: Any) -> bool:
    types = import_module("pyarrow").types
    return bool(types.is_integer(column.type) or types.is_floating(column.type) or types.is_decimal(column.type))


def _summarise(values: np.ndarray) -> tuple[dict[str, float], tuple[int, ...]]:
    """Return figures and a histogram of finite numbers; they are scaled, so that nothing overflows."""
    scale = max(1.0, float(np.abs(values).max()) / LARGE)
    scaled = values / scale if scale > 1 else values
    figures = {
        "minimum": values.min(), "median": np.median(scaled) * scale, "maximum": values.max(),
        "mean": scaled.mean() * scale, "deviation": scaled.std() * scale,
    }  # fmt: skip
    span = np.ptp(scaled)
    counts = np.histogram((scaled - scaled.min()) / span, BARS, (0, 1))[0] if span > 0 else ()
    return {name: float(value) for name, value in figures.items()}, tuple(int(count) for count in counts)
