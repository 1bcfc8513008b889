"""Curves: the values measured during a run over its iterations, epochs and seconds, from ``metrics.jsonl``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.training.checkpoints.format import Log

Rows = dict[str, list[tuple[float, ...]]]  # by name, in the order of a curve's fields


@frozen(eq=False)
class Curve:
    """A measured value over time: arrays of equal length, one element for each row of the metrics.

    ``values`` are the last ones before each row, ``low`` and ``high`` the least and the greatest since the previous
    row.  A value that was not finite is NaN.
    """

    iterations: np.ndarray
    epochs: np.ndarray
    seconds: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read(path: Path, log: Log) -> dict[str, dict[str, Curve]]:
    """Read the curves of ``metrics.jsonl``, by trainer and name.

    After a rewind or a resume, rows start again from an earlier iteration: they replace those from there on.  Lines
    that cannot be read are left out, and their number is logged.  Raises SigmaConfigError for a file that is
    missing or not a regular one.
    """
    trainers: dict[str, Rows] = {}
    latest: dict[str, float] = {}
    for row in _rows(path, log):
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


def _rows(path: Path, log: Log) -> Iterator[Mapping[str, Any]]:
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
