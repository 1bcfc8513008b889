"""Draft a configuration that forecasts a series as it is: its step, groups and season, and what needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_data.profiling.drafting import choose_batch_size, choose_width, quote
from sigma_data.profiling.kinds import list_names
from sigma_data.series.layout import SeriesRows
from sigma_data.series.seasons import find_season
from sigma_data.series.training import divide_times, order_rows
from sigma_data.series.windows import find_starts
from sigma_kernel import SigmaConfigError, SigmaDataError
from sigma_kernel.errors import suggest_name

SHARES = {"training": 0.7, "validation": 0.15, "test": 0.15}
LONGEST = 512  # rows of a window that is chosen here
GROUPS = 10_000  # distinct values of a column that may name series


@frozen(eq=False)
class SeriesDraft:
    """What a draft is made of: rows, the season with the reason, and the errors of forecasts without a network."""

    name: str
    place: str
    target: str
    time: str
    group: str | None
    rows: SeriesRows = field(repr=False)
    past: int
    ahead: int
    season: int
    reason: str
    windows: int
    baselines: Mapping[str, float]

    @property
    def text(self) -> str:
        """Return the configuration."""
        return "\n".join([*self._data(), *self._network(), ""])

    @property
    def notes(self) -> list[str]:
        """Return what a user should know, one sentence each."""
        rows, runs = self.rows, int(self.rows.runs[-1]) + 1
        notes = [f"the step is {rows.step}; {self.reason}."]
        if self.group:
            notes.append(f"column {self.group!r} names {len(rows.names):,} series: each time is there once in each.")
        if gaps := runs - len(rows.names):
            notes.append(f'{gaps:,} gaps, which no window covers; to fill them, write gaps = "hold" below [data].')
        if not rows.sorted:
            notes.append("rows are not in the order of time, and are sorted.")
        errors = ", ".join(f"{name} {error:.4g}" for name, error in self.baselines.items())
        if errors:
            notes.append(f"mean absolute errors on the validation times without a network: {errors}; compare yours.")
        return notes

    def _data(self) -> Iterator[str]:
        rows = self.rows
        yield f"# {self.place}: {len(rows.groups):,} rows, one {rows.step} apart, from {rows.times[0]} on."
        yield from (f"# {name}: mean absolute error {error:.4g}" for name, error in self.baselines.items())
        yield from ("", "format = 1", "", "[run]", f"name = {quote(self.name)}", "seed = 0", "")
        yield from ("[data]", 'dataset = "series"', f"path = {quote(self.place)}", f"target = {quote(self.target)}")
        yield f"time = {quote(self.time)}"
        if self.group:
            yield f"group = {quote(self.group)}".ljust(32) + "# each time is there once in each"
        yield f"past = {self.past}".ljust(32) + f"# {self.reason}"
        yield f"ahead = {self.ahead}"
        yield "split = { training = 0.7, validation = 0.15, test = 0.15 }  # in the order of time"
        yield from (f"batch_size = {choose_batch_size(self.windows)}", "")
        yield "[data.preprocessors.target]     # predictions are in the units of the column all the same"
        yield from ('type = "standardise"', 'section = "targets"', "")

    def _network(self) -> Iterator[str]:
        width = choose_width(self.windows)
        yield from (f"[network]                       # of a size for {self.windows:,} windows", 'architecture = """')
        yield f'input() + flatten() + dense({width}, activation="relu") + dropout(0.2) + output({self.ahead})'
        yield from ("+ squared_difference()", '"""', "", "[trainer]")
        yield from ('optimiser = { type = "adamw", learning_rate = 0.001 }', f"epochs = {self._epochs}", "")
        yield from ("[hooks.score]", 'type = "mean_absolute_error"', 'on = "validation"', 'every = "1 epoch"', "")
        yield from ("[hooks.finish]                  # the best parameters are restored", 'type = "early_stop"')
        yield from ('value = "validation.loss"', "patience = 15", "restore = true")

    @property
    def _epochs(self) -> int:
        return max(20, min(200, 1_000_000 // max(1, self.windows)))


def read_draft(source: Any, place: Path, written: str, wishes: Mapping[str, str]) -> SeriesDraft:
    """Return the draft for a table; raise SigmaDataError for columns that are not there, and for too few rows."""
    names = source.schema.names
    for wish in ("time", "target"):
        if wishes[wish] not in names:
            hint = suggest_name(wishes[wish], names) or f" There are: {list_names(names)}."
            raise SigmaDataError(f"{source.name}: there is no column {wishes[wish]!r}.{hint}")
    target, time, ahead = wishes["target"], wishes["time"], _read_count(wishes, "ahead") or 1
    past, table = _read_count(wishes, "past"), source.read()
    group = find_group(table, time, target)
    roles = {"time": time, "group": group, "targets": [target], "known": [], "others": []}
    rows = order_rows(table, roles, source, None, hold=False)
    values = rows.read_target(target)
    borders = divide_times(rows.positions, SHARES, source.name)
    training = rows.positions <= borders["training"][1]
    season, reason = find_season(values, rows.runs, training)
    reason = "past was given" if past else reason
    past = past or _choose_past(season, ahead, int(training.sum()), len(rows.names))
    starts = find_starts(rows.runs, ~np.isnan(values), past + ahead)
    first, last = rows.positions[starts + past], rows.positions[starts + past + ahead - 1]
    inside = {split: starts[(first >= low) & (last <= high)] for split, (low, high) in borders.items()}
    if few := [split for split, windows in inside.items() if not len(windows)]:
        raise SigmaDataError(
            f"{source.name}: has no {past + ahead} rows that follow each other up to the times of the {few[0]} split. "
            "Shorten --past or --ahead."
        )
    baselines = score_baselines(values, inside["validation"], past, ahead, season)
    name, count = place.name.partition(".")[0] or "series", len(inside["training"])
    return SeriesDraft(name, written, target, time, group, rows, past, ahead, season, reason, count, baselines)


def _read_count(wishes: Mapping[str, str], name: str) -> int | None:
    """Return a wish for a number of rows, None without one; raise SigmaConfigError for anything else."""
    if name not in wishes:
        return None
    text = str(wishes[name]).strip()
    if not (text.isdecimal() and len(text) < 10 and int(text)):
        remedy = "Give a whole number from 1 on, such as 24."
        raise SigmaConfigError(f"{name}: {text!r:.40} is not a number of rows. {remedy}")
    return int(text)


def _choose_past(season: int, ahead: int, rows: int, groups: int) -> int:
    """Return the rows of a window: a season, and as many as are predicted, if the training rows have room."""
    return max(1, min(max(season, ahead, 8), LONGEST, rows // groups // 3))


def find_group(table: Any, time: str, target: str) -> str | None:
    """Return the column with the fewest values that tells equal times apart; None if there are none."""
    if _are_distinct(table, time):
        return None
    pc = import_module("pyarrow.compute")
    types = import_module("pyarrow").types
    options = []
    for column in table.schema:
        if column.name in (time, target) or types.is_floating(column.type) or types.is_nested(column.type):
            continue
        distinct = pc.count_distinct(table[column.name]).as_py()
        named = 1 < distinct <= GROUPS and not table[column.name].null_count
        if named and _are_distinct(table, time, column.name):
            options.append((distinct, column.name))
    return min(options)[1] if options else None


def _are_distinct(table: Any, *names: str) -> bool:
    return bool(table.group_by([*names]).aggregate([]).num_rows == table.num_rows)


def score_baselines(values: np.ndarray, starts: np.ndarray, past: int, ahead: int, season: int) -> dict[str, float]:
    """Return the mean absolute error of the last value, and of the value a season before, over windows."""
    steps = np.arange(ahead)
    goals = values[starts[:, None] + past + steps]
    errors = {"last value": float(np.abs(values[starts + past - 1][:, None] - goals).mean())}
    if 1 < season <= past:
        before = values[starts[:, None] + past - season + steps % season]
        errors[f"value of {season} steps before"] = float(np.abs(before - goals).mean())
    return errors
