"""Branches of runs and their forks: where each begins, what was changed on it, and its best values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.curves import BranchedCurves
from sigma_kernel.errors import SigmaError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.launcher.output import say
from sigma_run.overview.describing import parent_of, to_whole
from sigma_training.history.replay import HEAD
from sigma_training.hooks.directions import find_direction

UNTOLD = ("save", "pause", "go", "step", "stop", "rewind")  # commands that change no result
FIELDS = (*HEAD, "command", "hash", "undoes")  # of rows, that are no arguments of a command
MOST, LONGEST = 20, 60  # commands of a branch, and characters of each

Row = Mapping[str, Any]


def list_branches(run: Path, stored: StoredRun) -> list[dict[str, Any]]:
    """Return the branches of the trainers of a run: parent, first and last iteration, changes, and the best values."""
    curves, parent, branches = stored.curves(say), parent_of(stored), dict[tuple[str, int], dict[str, Any]]()
    now = dict[str, int]()  # the branch of each trainer
    for row in stored.journal_rows():
        name, at = str(row.get("trainer")), to_whole(row.get("iteration"))
        rewinds = row.get("command") == "rewind"
        came_from = (
            {"run": run.name, "branch": now.get(name, 0), "iteration": to_whole(row.get("to"))} if rewinds else parent
        )
        now[name] = to_whole(row.get("branch")) if rewinds else now.get(name, 0)
        place = name, now[name]
        if place not in branches:
            first = {"run": run.name, "trainer": name, "branch": now[name], "parent": came_from}
            branches[place] = {**first, "iterations": at, "changes": []}
        own = branches[place]
        own["iterations"] = at if not rewinds else came_from["iteration"] if came_from else 0
        if "by" not in row and (change := _describe(row)) and len(own["changes"]) < MOST:
            own["changes"].append(change)
    nothing = BranchedCurves([], {})
    return [{**own, "best": best_values(curves.get(name, nothing), n)} for (name, n), own in branches.items()]


def _describe(row: Row) -> str:
    """Return a command as a person reads it; nothing for one that changes no result, and for an event."""
    if "command" not in row or row["command"] in UNTOLD:
        return ""
    arguments = [str(value) for name, value in row.items() if name not in FIELDS and value not in ("", None)]
    return " ".join([str(row["command"]), *arguments])[:LONGEST]


def best_values(curves: BranchedCurves, branch: int) -> dict[str, float]:
    """Return the best value on a branch of each name of which it is known which values are better."""
    better = {name: find_direction(name, _directions(name)) for name in curves.lines}
    best = dict[str, float]()
    for name, direction in better.items():
        pieces = [stretch.curve for stretch in curves.stretches(name) if stretch.branch == branch]
        values = [value for curve in pieces for value in (curve.low if direction == "lower" else curve.high)]
        if direction in ("lower", "higher") and np.isfinite(values).any():
            best[name] = float(np.nanmin(values) if direction == "lower" else np.nanmax(values))
    return best


def _directions(name: str) -> dict[str, str]:
    """Return which values of the metrics that a name may be of are better, by the name of the metric."""
    directions = dict[str, str]()
    for part in (part for part in name.split(".") if catalogue().offers("metric", part)):
        with suppress(SigmaError):
            metric: Any = catalogue().load("metric", part)
            directions[part] = metric.better
    return {part: direction for part, direction in directions.items() if direction}


def table_of(branches: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[str]]:
    """Yield the rows of a table of branches, its head first."""
    measured = dict.fromkeys(name for branch in branches for name in branch["best"])
    yield ["RUN", "BRANCH", "FROM", "ITERATIONS", *measured, "CHANGES"]
    for branch in branches:
        best = (branch["best"].get(name) for name in measured)
        yield [
            branch["run"],
            str(branch["branch"]),
            format_parent(branch["parent"]),
            str(branch["iterations"]),
            *("" if value is None else f"{value:.4g}" for value in best),
            "; ".join(branch["changes"]),
        ]


def format_parent(parent: Mapping[str, Any] | None) -> str:
    """Return where a branch begins: run, branch and iteration."""
    return "" if parent is None else f"{parent['run']} {parent['branch']} @ {parent['iteration']}"
