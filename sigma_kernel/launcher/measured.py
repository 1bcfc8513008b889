"""Compare ``metrics.jsonl`` of a run with what its replay measured."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import chain as joined, pairwise
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from sigma_kernel.curves import rows
from sigma_kernel.environment import Environment
from sigma_kernel.registry.addresses import matches
from sigma_kernel.training.history import chain
from sigma_kernel.training.history.replay import RESUMED
from sigma_kernel.training.session.loop import Session

Row = Mapping[str, Any]
ALL = 2**62  # values of a name
TRAINING = "training."  # values that no hook publishes
WHICH = {"last": "", "low": " at its least", "high": " at its greatest"}


def differing(run: Path, environment: Environment, log: Callable[[str], None]) -> dict[str, str]:
    """Return the first value of each trainer's rows that its replay did not measure, with its iteration.

    What cannot be compared is logged: after a crash, it is not known which rows the journal does not lead to.
    """
    path, journal = run / "metrics.jsonl", run / "journal.jsonl"
    if path.is_symlink() or not path.is_file():
        log(f"{path}: is missing, so that only the state is compared")
        return {}
    lines, kept, found = chain.read(journal, lambda text: None), list(rows(path, log)), dict[str, str]()
    for name, session in environment.sessions().items():
        events = chain.rows(journal, lines, name)
        if _crashed(events):
            log(f"{name}: was killed, or is training, so that only the state is compared, and not {path.name}")
        elif first := _first(_replayed([row for row in kept if row["trainer"] == name], events), session):
            found[name] = first
    return found


def _crashed(journal: Sequence[Row]) -> bool:
    """Return whether training was not ended before it was resumed, or at all."""
    turns = [row for row in journal if row.get("event") in ("begin", "end", RESUMED)]
    over = [*(before for before, row in pairwise(turns) if row["event"] == RESUMED), *turns[-1:]]
    return any(row["event"] != "end" or row["failed"] for row in over)


def _replayed(measured: Sequence[Row], journal: Sequence[Row]) -> list[Row]:
    """Return the rows of metrics that the replay of a journal measures again.

    It begins at the last change of settings.  Where training was interrupted, hooks may have acted on its end.
    """
    edited = max((n for n, row in enumerate(journal) if row.get("edits")), default=-1)
    resumed = max((n for n, row in enumerate(journal) if row.get("event") == RESUMED), default=0)
    ends = {row["iteration"] for row in journal[:resumed] if row.get("event") == "end"}
    measured = [_of_training(row) if row["iteration"] in ends else row for row in measured]
    if edited < 0:
        return measured
    start = journal[edited]["from"]
    last = max((n for n, row in enumerate(measured) if row["iteration"] <= start), default=-1)
    return measured[last + 1 :]


def _of_training(row: Row) -> Row:
    return {**row, "values": {name: value for name, value in row["values"].items() if name.startswith(TRAINING)}}


def _first(measured: Sequence[Row], session: Session) -> str | None:
    """Describe the first value of these rows that a session did not measure; None if there is none.

    A row holds values since the row before.  If there was a rewind in between, these are from the iterations that it
    went back to, and from later ones that it left.
    """
    ours, before = _measured(session), inf
    reached = max((iterations[-1] for iterations, _ in ours.values()), default=0)
    left = [branch.start for branch in session.recorder.history.branches()[1:]]
    since = min(left, default=inf)
    for row in measured:
        at, after = row["iteration"], min(before, since) if before <= row["iteration"] else 0
        before = at
        for name, found in row["values"].items() if at <= reached else ():
            iterations, values = ours.get(name, ([], []))
            near = values[bisect_left(iterations, after) : None if left else bisect_right(iterations, at)]
            wrong = [key for key in WHICH if not _within(found[key], near)]
            if wrong and _is_compared(name, session):
                what = f"{name} is {_said(found[wrong[0]])}{WHICH[wrong[0]]} in metrics.jsonl"
                now = _said(near[-1]) if near else "no value"
                return f"iteration {at} (epoch {row['epoch']}): {what}; the replay has {now}"
    return None


def _measured(session: Session) -> dict[str, tuple[list[int], list[float]]]:
    """Return the iterations and the values of each name, on all branches, in the order of iterations."""
    history, found = session.recorder.history, {}
    for name in history:
        stretches = history.since(name, 0, ALL)[1]
        at = np.fromiter(joined.from_iterable(one.curve.iterations for one in stretches), np.int64)
        values = np.fromiter(joined.from_iterable(one.curve.values for one in stretches), float)
        order = np.argsort(at, kind="stable")
        found[name] = at[order].tolist(), values[order].tolist()
    return found


def _is_compared(name: str, session: Session) -> bool:
    """Return whether a value depends on the state alone: one of training, or of a hook that is there and no clock's."""
    order = session.setup.order
    written = any(matches(pattern, name) for hook in order.hooks.values() for pattern in hook.writes)
    return name.startswith(TRAINING) or (written and not order.depends_on_time(name))


def _within(value: float | None, values: Sequence[float]) -> bool:
    return value in values if value is not None else any(not isfinite(one) for one in values)


def _said(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.9g}"
