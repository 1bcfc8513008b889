"""Curves: measured values over iterations, epochs and seconds; read from ``metrics.jsonl``, and as lines of charts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from attrs import fields, frozen

from sigma_kernel.charts import Line, svg
from sigma_kernel.errors import SigmaConfigError

AXES = {"iteration": "iterations", "epoch": "epochs", "second": "seconds"}  # and the fields of a curve

CHARTS = 12  # of a run folder's drawing


@frozen(eq=False, repr=False)
class Curve:
    """A measured value over time: arrays of equal length.

    ``values`` are those at each point, ``low`` and ``high`` the least and the greatest since the previous one.
    ``epochs`` are whole epochs completed by then.  In a curve that was read, values that were not finite are NaN.
    """

    iterations: np.ndarray
    epochs: np.ndarray
    seconds: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __repr__(self) -> str:
        ends = f", {self.values[0]:.4g} to {self.values[-1]:.4g}" if len(self.values) else ""
        return f"Curve({len(self.values)} points{ends})"


FIELDS = [field.name for field in fields(Curve)]


def joined(curves: Sequence[Curve]) -> Curve:
    """Return curves one after the other; an empty one for none."""
    columns = ([getattr(curve, name) for curve in curves] for name in FIELDS)
    return Curve(*map(np.concatenate, columns)) if curves else _curve([])


def table(curves: Mapping[str, Curve]) -> dict[str, np.ndarray]:
    """Return columns with a row per iteration: iteration, epoch, second, and each curve, NaN where it has no value."""
    every = joined([*curves.values()])
    iterations, first = np.unique(every.iterations, return_index=True)
    found = {"iteration": iterations, "epoch": every.epochs[first], "second": every.seconds[first]}
    for name, curve in curves.items():
        found[name] = np.full(len(iterations), np.nan)
        found[name][np.searchsorted(iterations, curve.iterations)] = curve.values
    return found


def by_epoch(curve: Curve) -> Curve:
    """Return the points at which another epoch is over, with the least and the greatest value since the one before.

    Points after the last of them are left out, unless there is none.
    """
    ends = np.flatnonzero(np.diff(curve.epochs, prepend=0) > 0)
    if not ends.size:
        return curve
    starts = np.concatenate([[0], ends[:-1] + 1])
    low, high = (f.reduceat(v[: ends[-1] + 1], starts) for f, v in ((np.fmin, curve.low), (np.fmax, curve.high)))
    return Curve(curve.iterations[ends], curve.epochs[ends], curve.seconds[ends], curve.values[ends], low, high)


def thinned(curve: Curve, most: int) -> Curve:
    """Return a curve of at most ``most`` points: neighbours are joined to their last one, with the least and greatest.

    Values that are not finite are left out of ``low`` and ``high``, unless there are no others.
    """
    count = len(curve.values)
    if count <= most:
        return curve
    ends = np.arange(1, most + 1) * count // most - 1
    starts = np.concatenate([[0], ends[:-1] + 1])
    low, high = np.fmin.reduceat(curve.low, starts), np.fmax.reduceat(curve.high, starts)
    return Curve(curve.iterations[ends], curve.epochs[ends], curve.seconds[ends], curve.values[ends], low, high)


def panels(curves: Mapping[str, Mapping[str, Curve]], over: str) -> dict[str, list[Line]]:
    """Return the lines of charts by measure, from curves by run and name, over one of ``AXES``.

    Curves with the same last name share a chart; if there are several runs, lines are labelled with theirs.
    """
    found: dict[str, list[Line]] = {}
    for run, values in curves.items():
        for name, curve in values.items():
            head, _, measure = name.rpartition(".")
            label = " ".join(filter(None, [head, run if len(curves) > 1 else ""]))
            shown = by_epoch(curve) if over == "epoch" else curve
            line = Line(label, getattr(shown, AXES[over]), shown.values, shown.low, shown.high)
            found.setdefault(measure, []).append(line)
    return found


def drawing(run: Path, log: Callable[[str], None]) -> str:
    """Return the first charts of a run folder as an SVG document; trainers are told apart by their names."""
    path = run / "metrics.jsonl"
    there = path.is_file() and not path.is_symlink()  # else someone removed or replaced it
    found = panels(read(path, log) if there else {}, "iteration")
    return svg(run.name, dict(islice(found.items(), CHARTS)))


# -- reading -----------------------------------------------------------------------------------------------------------
def read(path: Path, log: Callable[[str], None]) -> dict[str, dict[str, Curve]]:
    """Read the curves of ``metrics.jsonl``, by trainer and name.

    After a rewind or a resume, rows start again from an earlier iteration: they replace those from there on.  Lines
    that cannot be read are left out, and their number is logged.  Raises SigmaConfigError for a file that is
    missing or not a regular one.
    """
    trainers: dict[str, dict[str, list[tuple[float, ...]]]] = {}  # points in the order of a curve's fields
    latest: dict[str, float] = {}
    for row in rows(path, log):
        name, at = row["trainer"], (row["iteration"], row["epoch"], row["seconds"])
        curves = trainers.setdefault(name, {})
        if at[0] < latest.get(name, 0):
            for points in curves.values():
                _cut(points, at[0] + 1)
        latest[name] = at[0]
        for value, found in row["values"].items():
            points = curves.setdefault(value, [])
            _cut(points, at[0])
            points.append((*at, *(np.nan if found[key] is None else found[key] for key in ("last", "low", "high"))))
    return {name: {value: _curve(points) for value, points in curves.items()} for name, curves in trainers.items()}


def _cut(points: list[tuple[float, ...]], iteration: float) -> None:
    """Remove the points from an iteration on."""
    while points and points[-1][0] >= iteration:
        points.pop()


def _curve(points: list[tuple[float, ...]]) -> Curve:
    iterations, epochs, *others = np.array(points).reshape(-1, 6).T
    return Curve(iterations.astype(np.int64), epochs.astype(np.int64), *others)


def rows(path: Path, log: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file; the last line may be incomplete, as the run may be writing it."""
    if path.is_symlink() or not path.is_file():
        raise SigmaConfigError(f"{path}: no metrics there. Pass the folder of a run.")
    damaged = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            row = _row(line)
            damaged += row is None and line.endswith("\n")
            if row:
                yield row
    if damaged:
        log(f"{path}: {damaged} damaged line{'s are' if damaged > 1 else ' is'} left out.")


def _row(line: str) -> Mapping[str, Any] | None:
    """Parse a line: an empty mapping for the head of the file, None if the line is damaged."""
    try:
        row = json.loads(line)
        if "format" in row:
            return {}
        numbers = [row[key] for key in ("iteration", "epoch", "seconds")]
        for found in row["values"].values():
            numbers += [0.0 if found[key] is None else found[key] for key in ("last", "low", "high")]
        known = isinstance(row["trainer"], str) and all(isinstance(number, int | float) for number in numbers)
        return row if known else None
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None
