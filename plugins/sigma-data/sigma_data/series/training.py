"""Divide a series in time, fit its columns on the training rows, and cut windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve

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


def read_splits(series: Any, source: Any, roles: Mapping[str, Any]) -> tuple[dict[str, SeriesWindows], dict[str, Any]]:
    """Return the windows of each split of a data set ``series``, and what it learned."""
    rows = read_rows(source, roles, Spacing("row") if series.step == "row" else None, series.gaps == "hold")
    targets = {name: rows.read_target(name) for name in roles["targets"]}
    filled = {name: rows.fill(values) if series.gaps == "hold" else values for name, values in targets.items()}
    borders = divide_times(rows.positions, series.split, source.name)
    if series.fold is not None:
        borders = fold_times(rows.positions, borders, series.fold)
    early = dict.fromkeys((*roles["known"], roles["time"]), series.ahead)
    training = np.flatnonzero(rows.positions <= borders["training"][1])
    columns = fit_columns(rows, choose_columns(rows, roles, series.columns), roles["time"], filled, training)
    inputs = encode_rows(rows, columns, roles["time"], early, filled)
    goals = np.stack([*targets.values()], axis=1)
    names = name_targets(roles["targets"], series.ahead)
    cutter = _Cutter(rows, inputs, goals, np.stack([*filled.values()], axis=1), (series.past, series.ahead), names)
    parts = {name: cutter.cut(name, borders[name], source.name) for name in borders}
    learned = {
        "series": {
            "columns": describe_columns(columns), "targets": [*roles["targets"]], "known": [*roles["known"]],
            "time": roles["time"], "group": roles["group"], "past": series.past, "ahead": series.ahead,
            "step": rows.step.to_plain(), "gaps": series.gaps,
        },
        "targets": {"targets": names},
    }  # fmt: skip
    return parts, learned


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


def choose_columns(rows: SeriesRows, roles: Mapping[str, Any], given: Mapping[str, Any]) -> list[tuple[str, Encoder]]:
    """Return the columns that are inputs, each with its encoder: targets, others, what is known, and the calendar."""
    columns = []
    for name in (*roles["targets"], *roles["others"], *roles["known"]):
        encoder, column = given.get(name), rows.table[name]
        if encoder is None:
            is_target = name in roles["targets"]
            encoder = NumberEncoder() if is_target else choose_for(infer_kind(name, column), column)
        if encoder is not None and encoder != "exclude":
            columns.append((name, encoder if isinstance(encoder, Encoder) else make_encoder(encoder)))
    time = roles["time"]
    encoder = given.get(time) or (None if pa.types.is_integer(rows.times.type) else DateEncoder())
    if isinstance(encoder, Encoder):
        columns.append((time, encoder))
    return columns


def fit_columns(
    rows: SeriesRows,
    columns: Sequence[tuple[str, Encoder]],
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
        names: Sequence[str],
    ) -> None:  # fmt: skip
        self.rows, self.inputs, self.goals, self.size, self.names = rows, inputs, np.nan_to_num(goals), size, names
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
        return SeriesWindows(self.inputs, self.goals, starts, past, ahead, self.names)
