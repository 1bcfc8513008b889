"""Compare the metrics of a run with what its replay measured."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from sigma_kernel.environment import Environment
from sigma_kernel.registry.addresses import matches
from sigma_run.config.stores import open_run
from sigma_training.history.replay import RESUMED
from sigma_training.session.session import Session
from sigma_training.trainer import expect_trainer

Row = Mapping[str, Any]
ALL = 2**62  # values of a name
PLACE = {"branch": 0, "session": 0, "start": 0}  # of rows of a run that went on from its beginning to its end
SAME = ("digest", RESUMED)  # events that change nothing
TRAINING = "training."  # values that no hook publishes
WHICH = {"last": "", "low": " at its least", "high": " at its greatest"}


def differing(run: Path, environment: Environment, log: Callable[[str], None]) -> dict[str, str]:
    """Return the first value of each trainer's rows that its replay did not measure, with its iteration.

    Rows that cannot be compared are logged: older versions of Sigma do not name branch and session.
    """
    stored, differences = open_run(run, log), dict[str, str]()
    if not (kept := list(stored.metric_rows(log))):
        log(f"{run}: has no metrics, so that only the state is compared")
        return {}
    journal = stored.excerpt(environment.trainers, lambda text: None)
    for name, trainer in environment.trainers.items():
        own, events = [row for row in kept if row["trainer"] == name], journal.rows(name)
        if not all(row.keys() >= PLACE.keys() for row in own) and _is_interrupted(events):
            log(f"{name}: its metrics do not say which rows were left, so that only the state is compared")
        elif first := _first_difference(
            _replayable_rows([{**PLACE, **row} for row in own], events), expect_trainer(trainer).session
        ):
            differences[name] = first
    return differences


def _is_interrupted(journal: Sequence[Row]) -> bool:
    """Return whether training went back, was resumed, or did not end."""
    there = {row.get("command", row.get("event")) for row in journal}
    return bool(there & {"rewind", "reset", RESUMED}) or "end" not in there


def _replayable_rows(measured: Sequence[Row], journal: Sequence[Row]) -> list[Row]:
    """Return the rows of metrics that the replay of a journal measures again.

    It begins at the last change of settings.  What a session measured that was killed is measured again up to where the
    session after it did something else.  Where training was interrupted, hooks may have acted on its end.
    """
    resumes = [n for n, row in enumerate(journal) if row.get("event") == RESUMED]
    first = max((session for session, n in enumerate(resumes, 1) if journal[n].get("edits")), default=0)
    ends = {row["iteration"] for row in journal[: max(resumes, default=0)] if row.get("event") == "end"}
    departs = [_departure(journal, n) for n in resumes]
    kept = [row for row in measured if row["session"] >= first and not _is_lost(row, departs[row["session"] :])]
    return [_of_training(row) if row["iteration"] in ends else row for row in kept]


def _departure(journal: Sequence[Row], resumed: int) -> tuple[int, float]:
    """Return the branch that a session left at its end, and the iteration up to which the next one did the same."""
    branch = next((row["branch"] for row in reversed(journal[:resumed]) if row.get("command") == "rewind"), 0)
    new = (row["iteration"] for row in journal[resumed + 1 :] if "by" not in row and row.get("event") not in SAME)
    return branch, next(new, inf)


def _is_lost(row: Row, departs: Sequence[tuple[int, float]]) -> bool:
    """Return whether a row was measured after the next session departed from it."""
    return bool(departs) and row["branch"] == departs[0][0] and row["iteration"] > departs[0][1]


def _of_training(row: Row) -> Row:
    return {**row, "values": {name: value for name, value in row["values"].items() if name.startswith(TRAINING)}}


def _first_difference(measured: Sequence[Row], session: Session) -> str | None:
    """Describe the first value of these rows that a session did not measure; None if there is none.

    A row holds values since the row before on the same branch, or since it began there, which a reset does anew.
    """
    ours, before = _curves_by_branch(session), dict[tuple[int, int, int], int]()
    for row in measured:
        at, place = row["iteration"], (row["branch"], row["session"], row["start"])
        after: int = before[place] if before.get(place, inf) <= at else row["start"]
        before[place] = at
        curves = ours.get(row["branch"], {})
        reached = max((iterations[-1] for iterations, _ in curves.values()), default=-1)
        for name, value in row["values"].items() if at <= reached else ():
            iterations, values = curves.get(name, ([], []))
            near = values[bisect_left(iterations, after) : bisect_right(iterations, at)]
            wrong = [key for key in WHICH if not _contains(value[key], near)]
            if wrong and _is_compared(name, session):
                what = f"{name} is {_format_value(value[wrong[0]])}{WHICH[wrong[0]]} in the metrics of the run"
                now = _format_value(near[-1]) if near else "no value"
                return f"iteration {at} (epoch {row['epoch']}): {what}; the replay has {now}"
    return None


def _curves_by_branch(session: Session) -> dict[int, dict[str, tuple[list[int], list[float]]]]:
    """Return the iterations and the values of each name, by branch, in the order of iterations."""
    history, by_branch = session.recorder.history, dict[int, dict[str, tuple[list[int], list[float]]]]()
    for name in history:
        stretches = history.stretches_since(name, 0, ALL)[1]
        for branch in {stretch.branch for stretch in stretches}:
            curves = [stretch.curve for stretch in stretches if stretch.branch == branch]
            at, values = (
                np.concatenate([getattr(curve, column) for curve in curves]) for column in ("iterations", "values")
            )
            order = np.argsort(at, kind="stable")
            by_branch.setdefault(branch, {})[name] = at[order].tolist(), values[order].tolist()
    return by_branch


def _is_compared(name: str, session: Session) -> bool:
    """Return whether a value depends on the state alone: one of training, or of a hook that is there and no clock's."""
    order = session.setup.order
    written = any(matches(pattern, name) for hook in order.hooks.values() for pattern in hook.writes)
    return name.startswith(TRAINING) or (written and not order.depends_on_time(name))


def _contains(value: float | None, values: Sequence[float]) -> bool:
    return value in values if value is not None else any(not isfinite(x) for x in values)


def _format_value(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.9g}"
