"""Recall a moment of a stored run: restore the newest state that is kept before it, and replay the journal up to it.

A moment is the state that an iteration has left on a branch, with the hooks that were due there, and before anything
was commanded there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from attrs import frozen

from sigma_kernel.contracts.storing import Checkpoint, Checkpoints, Excerpt, Log, StoredRun
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_training.history.replay import (
    BESIDE,
    Replay,
    Row,
    last_edited,
    rows_since,
    without_interruptions,
    without_workers,
)
from sigma_training.runs.resume import begin_replay, fit
from sigma_training.session.progress import Phase
from sigma_training.session.session import Session

LEAVING = ("rewind", "reset")  # commands after which training goes on from an earlier iteration
BETWEEN = ("begin", "end", "data", *BESIDE)  # events at a boundary, after the hooks that are due


@frozen
class RunMoment:
    """A moment of a run; without a ``branch``, that on the way to its present state."""

    iteration: int
    branch: int | None = None


@frozen(eq=False)
class Part:
    """The rows of a branch, from where training went on from an iteration, to where it went back from another."""

    branch: int
    start: int
    end: int
    place: int  # of the first row, in the journal
    rows: Sequence[Row]

    @property
    def last(self) -> int:
        """Return the place of the last row."""
        return int(self.rows[-1]["place"]) if self.rows else self.place - 1


def go_to(run: StoredRun, session: Session, journal: Excerpt, moment: RunMoment, log: Log) -> None:
    """Prepare a session to replay the journal of a run up to a moment; raise SigmaStateError for one it does not know.

    Raises SigmaCheckpointError if the journal does not reach back to any state before it.
    """
    name, every = session.setup.name, journal.rows(session.setup.name)
    edited = last_edited(every)
    parts = split_parts(every) if edited is None else split_parts(every[edited + 1 :], every[: edited + 1])
    part = find_part(name, parts, moment)
    label, base = _select_base(run.checkpoints(name), part, moment.iteration)
    if base is None:
        rows = begin_replay(run, session, journal, log)
    else:
        fit(run.checkpoints(name).place(label), base, session)
        session.recorder.begin(part.branch, session.moment.iteration)
        session.recorder.past.keep(session.moment, session.snapshot())
        rows = rows_since(base.values["journal"], part.rows)
    left = deque(row for row in rows if row["place"] <= part.last)
    session.recorder.compare(Replay(left, goes_on=False, until=moment.iteration, since=part.place))


# -- where a moment is -------------------------------------------------------------------------------------------------
def split_parts(rows: Sequence[Row], before: Sequence[Row] = ()) -> list[Part]:
    """Return the parts of a journal between the commands after which training went on from an earlier iteration.

    The last row ``before`` is a change of settings, which it goes on from.
    """
    rows = without_interruptions(without_workers(rows))
    cuts = [n for n, row in enumerate(rows) if row.get("command") in LEAVING]
    branch = next((row["branch"] for row in reversed(before) if row.get("command") == "rewind"), 0)
    start, place = (before[-1]["from"], before[-1]["place"] + 1) if before else (0, 0)
    parts = list[Part]()
    for first, end in pairwise([-1, *cuts, len(rows)]):
        own, row = rows[first + 1 : end], rows[first] if first >= 0 else {}
        branch, start, place = row.get("branch", branch), row.get("to", start), row.get("place", place - 1) + 1
        start = 0 if row.get("command") == "reset" else start
        reached = rows[end]["iteration"] if end < len(rows) else max((each["iteration"] for each in own), default=start)
        parts.append(Part(branch, start, reached, place, own))
    return parts


def find_part(trainer: str, parts: Sequence[Part], moment: RunMoment) -> Part:
    """Return the part in which a moment is; raise SigmaStateError if there is none."""
    at, branch = moment.iteration, moment.branch
    if branch is None:
        last = parts[-1]
        for part in reversed(parts[:-1]):  # each branch goes on from the one before
            if at >= last.start:
                break
            last = part
        found = last
    else:
        own = [part for part in parts if part.branch == branch]
        if not own:
            known = ", ".join(dict.fromkeys(str(part.branch) for part in parts))
            raise SigmaStateError(f"{trainer}: has no branch {branch}. There are: {known}.")
        found = own[-1]
    if not found.start <= at <= found.end:
        raise SigmaStateError(
            f"{trainer}: iteration {at} of branch {found.branch} is not known. It is from {found.start} to {found.end}."
        )
    return found


def _select_base(checkpoints: Checkpoints, part: Part, at: int) -> tuple[str, Checkpoint | None]:
    """Return the newest intact checkpoint of a part at or before an iteration, with its label; None without any."""
    for number in (number for number in reversed(checkpoints.numbers()) if part.start <= number <= at):
        with suppress(SigmaCheckpointError):  # an older one will do
            values = checkpoints.read_manifest(str(number), _silent)["values"]
            if _is_in(part, values, number, at):
                return str(number), checkpoints.read(str(number), _silent)
    return "", None


def _is_in(part: Part, values: Row, number: int, at: int) -> bool:
    """Return whether a checkpoint of an iteration is on the way to a moment of a part."""
    place = values.get("journal", -1)
    if "lacks" in values or values.get("branch", 0) != part.branch or not part.place <= place <= part.last + 1:
        return False
    before = (row for row in part.rows if row["place"] < place and row["iteration"] == at)
    changed = (
        row.get("event") in BETWEEN or ("by" not in row and row.get("command", "save") != "save") for row in before
    )
    return number < at or not (any(changed) or Phase.ENDED in values.get("progress", ()))


def _silent(text: str) -> None:
    """Log nothing: restoring the checkpoint logs it."""
