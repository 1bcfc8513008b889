"""Divide a series in time, fit its columns on the training rows, and cut windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from sigma_data.encoded import EncodedColumn, join, make_encoder
from sigma_data.encoders.date import DateEncoder
from sigma_data.encoders.number import NumberEncoder
from sigma_data.profiling.encoders import choose_for
from sigma_data.profiling.kinds import infer_kind
from sigma_data.series.layout import SeriesRows, describe_columns, encode_rows, sort_rows
from sigma_data.series.times import MONTHS, Spacing
from sigma_data.series.windows import SeriesWindows, find_starts
from sigma_data.splitting import FOLDED, Folding, allot, cut
from sigma_kernel import Encoder, SigmaConfigError, SigmaDataError

Borders = dict[str, tuple[int, int]]  # the first and the last time of each split

UNSEEN = {"elapsed", "day"}  # parts of a date that do not come again, or that say little
OF_DAYS = {"weekday", "weekend"}  # parts that say nothing of months


@frozen(eq=False)
class SeriesPlan:
    """The rows of a data set ``series`` in order, and what its windows are cut from beside encoded columns.

    ``goals`` are the targets by name, NaN where one is missing, ``filled`` those with gaps that were filled, and
    ``borders`` the times of each split.
    """

    series: Any
    roles: Mapping[str, Any]
    where: str
    rows: SeriesRows
    goals: Mapping[str, np.ndarray]
    filled: Mapping[str, np.ndarray]
    borders: Borders

    @classmethod
    def from_rows(cls, series: Any, rows: SeriesRows, roles: Mapping[str, Any], where: str) -> SeriesPlan:
        """Return the plan of a series; raise SigmaDataError for targets that are no numbers, and too few times."""
        goals = {name: rows.read_target(name) for name in roles["targets"]}
        filled = {name: rows.fill(values) if series.gaps == "hold" else values for name, values in goals.items()}
        borders = divide_times(rows.positions, series.split, where)
        if series.fold is not None:
            borders = fold_times(rows.positions, borders, series.fold)
        return cls(series, roles, where, rows, goals, filled, borders)

    @property
    def early(self) -> dict[str, int]:
        """Return how many steps before its time a row has the value of a column that is known in advance."""
        return dict.fromkeys((*self.roles["known"], self.roles["time"]), self.series.ahead)

    def fit(self, rows: SeriesRows) -> list[EncodedColumn]:
        """Return the columns that are inputs, fitted on the training rows."""
        training = np.flatnonzero(rows.positions <= self.borders["training"][1])
        columns = choose_columns(rows, self.roles, self.series.columns)
        return fit_columns(rows, columns, self.roles["time"], self.filled, training)

    def cut(
        self, inputs: np.ndarray, columns: Sequence[EncodedColumn], make: Callable[..., SeriesWindows] = SeriesWindows
    ) -> tuple[dict[str, SeriesWindows], dict[str, Any]]:
        """Return the windows of each split, and what was learned."""
        series, names = self.series, name_targets(self.roles["targets"], self.series.ahead)
        goals, filled = (np.stack([*held.values()], axis=1) for held in (self.goals, self.filled))
        cutter = _Cutter(self.rows, inputs, goals, filled, (series.past, series.ahead), names, make)
        parts = {name: cutter.cut(name, border, self.where) for name, border in self.borders.items()}
        learned = {
            "columns": describe_columns(columns), "targets": [*self.roles["targets"]],
            "known": [*self.roles["known"]], "time": self.roles["time"], "group": self.roles["group"],
            "past": series.past, "ahead": series.ahead, "step": self.rows.step.to_plain(), "gaps": series.gaps,
        }  # fmt: skip
        return parts, {"series": learned, "targets": {"targets": names}}


def read_splits(series: Any, source: Any, roles: Mapping[str, Any]) -> tuple[dict[str, SeriesWindows], dict[str, Any]]:
    """Return the windows of each split of a data set ``series``, and what it learned."""
    rows = read_rows(source, roles, find_given_step(series), series.gaps == "hold")
    plan = SeriesPlan.from_rows(series, rows, roles, source.name)
    columns = plan.fit(rows)
    return plan.cut(encode_rows(rows, columns, roles["time"], plan.early, plan.filled), columns)


def find_given_step(series: Any) -> Spacing | None:
    """Return the step of a data set ``series`` that says it; None if it is to be found."""
    return Spacing("row") if series.step == "row" else None


def read_rows(source: Any, roles: Mapping[str, Any], step: Spacing | None, hold: bool) -> SeriesRows:
    """Return the rows of a source in order; raise SigmaDataError if there is none."""
    return order_rows(source.read(_name_columns(roles)), roles, source, step, hold)


def _name_columns(roles: Mapping[str, Any]) -> list[str]:
    wanted = [roles["time"], roles["group"], *roles["targets"], *roles["known"], *roles["others"]]
    return [*dict.fromkeys(name for name in wanted if name is not None)]


def order_rows(table: Any, roles: Mapping[str, Any], source: Any, step: Spacing | None, hold: bool) -> SeriesRows:
    """Return the rows of a table that was read from a source in order; raise SigmaDataError if there is none."""
    if not table.num_rows:
        raise SigmaDataError(f"{source.name}: there is no row. Check the path.")
    return sort_rows(table, roles["time"], roles["group"], source, step, hold)


def divide_times(positions: np.ndarray, shares: Mapping[str, float], where: str) -> Borders:
    """Return the first and the last time of each split; each gets its share of the distinct times, in order."""
    times = np.unique(positions)
    pieces = cut(times, allot(len(times), shares))
    for name, piece in pieces.items():
        if not len(piece):
            raise SigmaDataError(f"{where}: split {name!r} gets none of {len(times)} times. Give it more.")
    return {name: (int(piece[0]), int(piece[-1])) for name, piece in pieces.items()}


def fold_times(positions: np.ndarray, borders: Borders, fold: Folding) -> Borders:
    """Return the first and the last time of each part of a fold: validation follows on training, which expands.

    The times of ``training`` and ``validation`` are divided as by ``TimeSeriesSplit`` of scikit-learn; other splits
    stay.  Raises SigmaConfigError if there are too few times, or another split is between the two.
    """
    pool = {name: border for name, border in borders.items() if name in FOLDED}
    if [*borders][: len(pool)] != [*pool]:
        names = ", ".join(borders)
        raise SigmaConfigError(f"fold: 'validation' must follow on 'training' (the splits are {names}). Move it.")
    first, last = borders["training"][0], max(end for _, end in pool.values())
    times = np.unique(positions)
    times = times[(times >= first) & (times <= last)]
    size = len(times) // (fold.of + 1)
    if not size:
        raise SigmaConfigError(
            f"fold: {fold.of} folds need at least {fold.of + 1} times, and there are {len(times)}. Use fewer folds."
        )
    start = len(times) - (fold.of - fold.number) * size
    others = {name: border for name, border in borders.items() if name not in FOLDED}
    before, within = times[:start], times[start : start + size]
    return {name: (int(t[0]), int(t[-1])) for name, t in zip(FOLDED, (before, within), strict=True)} | others


def choose_columns(
    rows: SeriesRows, roles: Mapping[str, Any], given: Mapping[str, Any]
) -> Iterator[tuple[str, Encoder]]:
    """Yield the columns that are inputs, each with its encoder: targets, others, what is known, and the calendar."""
    for name in (*roles["targets"], *roles["others"], *roles["known"]):
        encoder, column = given.get(name), rows.table[name]
        if encoder is None:
            is_target = name in roles["targets"]
            encoder = NumberEncoder() if is_target else choose_for(infer_kind(name, column), column)
        if encoder is not None and encoder != "exclude":
            yield name, encoder if isinstance(encoder, Encoder) else make_encoder(encoder)
    time = roles["time"]
    encoder = given.get(time) or (None if pa.types.is_integer(rows.times.type) else DateEncoder())
    if isinstance(encoder, Encoder):
        yield time, encoder


def fit_columns(
    rows: SeriesRows,
    columns: Iterable[tuple[str, Encoder]],
    time: str,
    filled: Mapping[str, np.ndarray],
    training: np.ndarray,
) -> list[EncodedColumn]:
    """Return the columns, fitted on the training rows; by default, the calendar has only parts that come again."""
    fitted = []
    for name, encoder in columns:
        cells = rows.times if name == time else pa.array(filled[name], from_pandas=True) if name in filled else None
        cells = join(rows.table[name]) if cells is None else cells
        table = pa.table({name: cells}).take(pa.array(training))
        column = EncodedColumn(name, encoder).fit(table, None, lambda row: rows.place(int(training[row])))
        if encoder == DateEncoder():
            unseen = UNSEEN | OF_DAYS if rows.step.unit in MONTHS else UNSEEN
            parts = [part for part in column.state["parts"] if part not in unseen]
            column = evolve(column, state={**column.state, "parts": parts})
            if not parts:
                continue
        fitted.append(column)
    return fitted


def name_targets(targets: Sequence[str], ahead: int) -> list[str]:
    """Return a name for each number that is predicted, such as ``load +1``: all targets of a step, step by step."""
    return [f"{name} +{step}" for step in range(1, ahead + 1) for name in targets]


class _Cutter:
    """Windows over rows: ``goals`` are NaN where a target is missing, ``filled`` where it is not filled either."""

    def __init__(
        self, rows: SeriesRows, inputs: np.ndarray, goals: np.ndarray, filled: np.ndarray, size: tuple[int, int],
        names: Sequence[str], make: Callable[..., SeriesWindows],
    ) -> None:  # fmt: skip
        self.rows, self.inputs, self.goals, self.size, self.names = rows, inputs, np.nan_to_num(goals), size, names
        self.make = make
        past, ahead = size
        readable = ~np.isnan(filled).any(axis=1)
        scored = rows.real & ~np.isnan(goals).any(axis=1)
        starts = find_starts(rows.runs, readable, past, ahead)
        bad = np.concatenate([[0], np.cumsum(~scored)])
        self.starts = starts[bad[starts + past + ahead] == bad[starts + past]]

    def cut(self, name: str, border: tuple[int, int], where: str) -> SeriesWindows:
        """Return the windows whose steps to predict are within a border."""
        past, ahead = self.size
        positions = self.rows.positions
        first, last = positions[self.starts + past], positions[self.starts + past + ahead - 1]
        starts = self.starts[(first >= border[0]) & (last <= border[1])]
        if not len(starts):
            raise SigmaDataError(
                f"{where}: split {name!r} has no window: none of its times has {past} rows before it and {ahead} from "
                f"it on, one step of {self.rows.step} apart. Shorten `past` or `ahead`, give it a larger share, or set "
                "gaps = 'hold' or step = 'row'."
            )
        return self.make(self.inputs, self.goals, starts, past, ahead, self.names)
