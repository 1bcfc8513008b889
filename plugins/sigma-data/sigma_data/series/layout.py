"""Rows of a series in the order of groups and time, and the columns that a window reads from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from sigma_data.encoded import EncodedColumn, Place, join, make_encoder
from sigma_data.encoders.columns import read_numbers
from sigma_data.series.times import Spacing, infer_step, read_column_of_times, to_integers
from sigma_data.series.windows import number_runs
from sigma_kernel import SigmaDataError


@frozen(eq=False)
class SeriesRows:
    """Rows sorted by group and time, without gaps that were filled; ``numbers`` are those of the rows in the table.

    ``times`` are an array of Arrow, ``groups`` the number of the group of each row, and ``names`` their names.
    ``positions`` are the times as whole numbers, which can be compared between groups.  ``real`` is False for rows that
    fill a gap: they repeat the row before.
    """

    table: Any = field(repr=False)
    times: Any = field(repr=False)
    positions: np.ndarray = field(repr=False)
    groups: np.ndarray = field(repr=False)
    names: Sequence[Any] = field(repr=False)
    numbers: np.ndarray = field(repr=False)
    real: np.ndarray = field(repr=False)
    step: Spacing
    sorted: bool
    place: Place

    @cached_property
    def runs(self) -> np.ndarray:
        """Return the number of the run of each row: rows of one group that follow each other by one step."""
        return number_runs(self.positions, self.groups, None if self.step.unit == "row" else self.step.size)

    def take(self, rows: np.ndarray, table: Any) -> SeriesRows:
        """Return some rows, of which the columns are those of a table."""
        return evolve(
            self, table=table, times=self.times.take(pa.array(rows)), positions=self.positions[rows],
            groups=self.groups[rows], numbers=self.numbers[rows], real=self.real[rows],
            place=lambda row: self.place(int(rows[row])),
        )  # fmt: skip

    def read_target(self, name: str) -> np.ndarray:
        """Return a target, NaN where it is missing, float64."""
        try:
            return read_numbers(join(self.table[name]))
        except SigmaDataError as error:
            raise SigmaDataError(f"{self.place(error.row or 0)}: column {name!r}: {error.args[0]}") from error

    def fill(self, values: np.ndarray) -> np.ndarray:
        """Return values with each missing one replaced by the last before it, unless its run has no value later."""
        runs, there = self.runs, ~np.isnan(values)
        rows = np.arange(len(values))
        before = np.maximum.accumulate(np.where(there, rows, -1))
        after = np.minimum.accumulate(np.where(there, rows, len(rows))[::-1])[::-1]
        inside = (before >= 0) & (after < len(rows))
        inside[inside] = (runs[before[inside]] == runs[inside]) & (runs[after[inside]] == runs[inside])
        return np.where(inside, values[np.maximum(before, 0)], np.nan)


def sort_rows(table: Any, time: str, group: str | None, source: Any, step: Spacing | None, hold: bool) -> SeriesRows:
    """Return the rows of a table in order, with their step; raise SigmaDataError for times that occur twice."""
    times = _read_times(table[time], time, source.place)
    names, groups = _number_groups(table, group, source.place)
    ticks = to_integers(times)
    order = np.lexsort((ticks, groups))
    is_sorted = bool((order == np.arange(len(order))).all())
    times, groups, ticks = times.take(pa.array(order)), groups[order], ticks[order]
    twice = np.flatnonzero((groups[1:] == groups[:-1]) & (np.diff(ticks) == 0))
    if len(twice):
        first, second = (source.place(int(order[twice[0] + i])) for i in (0, 1))
        where = f" of {group} {names[groups[twice[0]]]!r}" if group else ""
        raise SigmaDataError(
            f"{second}: the time {times[int(twice[0])]}{where} is there already, in {first}. Name the column of the "
            "series in `group` if there are several, state offsets from UTC if clocks are set back, or remove one row."
        )
    step = step or infer_step(times, groups)
    rows = SeriesRows(
        table.take(pa.array(order)), times, step.positions(times), groups, names, order, np.ones(len(order), bool),
        step, is_sorted, lambda row: source.place(int(order[row])),
    )  # fmt: skip
    return _hold(rows, source.place) if hold else rows


def _read_times(column: Any, name: str, place: Place) -> Any:
    missing = np.flatnonzero(np.asarray(column.is_null()))
    if len(missing):
        raise SigmaDataError(
            f"{place(int(missing[0]))}: column {name!r}: there is no time. Enter it, or remove the row."
        )
    try:
        return read_column_of_times(join(column))
    except SigmaDataError as error:
        raise SigmaDataError(f"{place(error.row or 0)}: column {name!r}: {error.args[0]}") from error


def _number_groups(table: Any, group: str | None, place: Place) -> tuple[Sequence[Any], np.ndarray]:
    """Return the names of the groups in order of their first rows, and the number of each row's."""
    if group is None:
        return ("",), np.zeros(table.num_rows, np.int64)
    codes = pc.dictionary_encode(join(table[group]))
    missing = np.flatnonzero(np.asarray(pc.is_null(codes)))
    if len(missing):
        raise SigmaDataError(
            f"{place(int(missing[0]))}: column {group!r}: there is no group. Enter it, or remove the row."
        )
    return codes.dictionary.to_pylist(), codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _hold(rows: SeriesRows, place: Place) -> SeriesRows:
    """Return rows with the missing steps between two rows filled by copies of the row before."""
    size = rows.step.size
    if rows.step.unit == "row" or len(rows.groups) < 2:
        return rows
    apart = np.append(np.diff(rows.positions), size)
    same = np.append(rows.groups[1:] == rows.groups[:-1], False)
    copies = np.where(same & (apart % size == 0), apart // size, 1)
    if copies.sum() > 4 * len(copies) + 1000:
        worst = int(copies.argmax())
        raise SigmaDataError(
            f"{rows.place(worst)}: {copies[worst] - 1:,} steps of {rows.step} are missing after this row, and in all "
            "more than four times as many as there are rows. Set gaps = 'cut'."
        )
    source = np.repeat(np.arange(len(copies)), copies)
    offset = np.arange(len(source)) - np.repeat(np.cumsum(copies) - copies, copies)
    times = rows.step.advance(rows.times.take(pa.array(source)), offset)
    numbers = rows.numbers[source]
    return SeriesRows(
        rows.table.take(pa.array(source)), times, rows.positions[source] + offset * size, rows.groups[source],
        rows.names, numbers, offset == 0, rows.step, rows.sorted, lambda row: place(int(numbers[row])),
    )  # fmt: skip


# -- columns -----------------------------------------------------------------------------------------------------------
def encode_rows(
    rows: SeriesRows,
    columns: Sequence[EncodedColumn],
    time: str,
    early: Mapping[str, int],
    filled: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Return the numbers of all columns, (rows, width).

    ``early`` are the columns that are known in advance, with the number of steps: a row has what they hold then.
    ``filled`` are the targets.
    """
    parts = []
    for column in columns:
        if column.name == time:
            cells = rows.step.shift(rows.times, early.get(time, 0))
        elif column.name in filled:
            cells = pa.array(filled[column.name], from_pandas=True)
        else:
            cells = join(rows.table[column.name])
        values = column.apply(pa.table({column.name: cells}), rows.place)
        if column.name in early and column.name != time:
            later = np.minimum(np.arange(len(values)) + early[column.name], len(values) - 1)
            values = values[later]
        parts.append(values)
    return np.ascontiguousarray(np.concatenate(parts, axis=1), np.float64)


def describe_columns(columns: Sequence[EncodedColumn]) -> list[dict[str, Any]]:
    """Return columns as plain values, to save with a run."""
    return [column.to_plain() for column in columns]


def restore_columns(plain: Sequence[Mapping[str, Any]]) -> tuple[EncodedColumn, ...]:
    """Return the columns of plain values."""
    return tuple(EncodedColumn(c["name"], make_encoder(c["encoder"]), c["state"]) for c in plain)
