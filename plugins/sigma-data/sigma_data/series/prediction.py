"""Windows of another table with the columns of a series, to predict from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.lib.stride_tricks import sliding_window_view

from sigma_data.frames import check_names
from sigma_data.series.layout import SeriesRows, encode_rows, restore_columns
from sigma_data.series.times import Spacing
from sigma_data.series.training import read_rows
from sigma_data.series.windows import find_starts
from sigma_kernel import SigmaConfigError, SigmaDataError


@frozen(eq=False)
class NewRows:
    """Rows to predict from, and the first row of each window."""

    rows: SeriesRows
    filled: Mapping[str, np.ndarray] = field(repr=False)
    starts: np.ndarray = field(repr=False)
    learned: Mapping[str, Any] = field(repr=False)

    @classmethod
    def open(cls, source: Any, learned: Mapping[str, Any]) -> NewRows:
        """Return the rows of a table by what a run learned; raise SigmaDataError for one without a window."""
        held = _read_learned(learned, source.name)
        past, names = held["past"], [column.name for column in held["columns"]]
        wanted = [*dict.fromkeys([held["time"], *([held["group"]] if held["group"] else []), *held["targets"], *names])]
        check_names(dict.fromkeys(source.schema.names), wanted, source.schema.names, source.name)
        others = [name for name in names if name not in {*held["targets"], *held["known"], held["time"]}]
        rows = read_rows(source, {**held, "others": others}, held["step"], held["gaps"] == "hold")
        targets = {name: rows.read_target(name) for name in held["targets"]}
        filled = {name: rows.fill(values) if held["gaps"] == "hold" else values for name, values in targets.items()}
        readable = ~np.isnan(np.stack([*filled.values()])).any(axis=0)
        beyond = held["ahead"] if held["known"] else 0
        starts = find_starts(rows.runs, readable, past, beyond)
        if not len(starts):
            more = f", and {beyond} rows after them that say what is known in advance" if beyond else ""
            raise SigmaDataError(
                f"{source.name}: has no window of {past} rows with a target, one step of {rows.step} apart{more}. Give "
                "more rows."
            )
        return cls(rows, filled, starts, held)

    def samples(self) -> np.ndarray:
        """Return the windows, (windows, past, columns)."""
        held = self.learned
        early = dict.fromkeys((*held["known"], held["time"]), held["ahead"])
        values = encode_rows(self.rows, held["columns"], held["time"], early, self.filled)
        windows: np.ndarray = sliding_window_view(values, held["past"], axis=0).swapaxes(1, 2)[self.starts]
        return windows

    def identify(self) -> dict[str, list[str]]:
        """Return the group of each window, if there are groups, and the last time of its past."""
        last = self.starts + self.learned["past"] - 1
        times = [str(time.as_py()) for time in self.rows.times.take(last)]
        group, names = self.learned["group"], self.rows.names
        groups = {group: [str(names[number]) for number in self.rows.groups[last]]} if group else {}
        return {**groups, self.learned["time"]: times}


def _read_learned(learned: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what a run saved about its series; raise SigmaDataError if it is damaged."""
    try:
        held = learned["series"]
        step = Spacing(*held["step"])
        numbers = {name: int(held[name]) for name in ("past", "ahead")}
        return {**held, **numbers, "columns": restore_columns(held["columns"]), "step": step}
    except (AttributeError, KeyError, TypeError, ValueError, SigmaConfigError) as error:
        raise SigmaDataError(
            f"{where}: the series of the training is damaged in the checkpoint: it holds "
            f"{learned.get('series')!r:.60}. Use another checkpoint, or train again."
        ) from error
