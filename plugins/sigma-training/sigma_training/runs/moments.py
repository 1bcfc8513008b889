"""Moments of a stored run: where in its journal one is, and which checkpoints lead to it.

A moment is the state that an iteration has left on a branch, with the hooks that were due there, and before anything
was commanded there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from attrs import frozen

from sigma_kernel.errors import SigmaStateError
from sigma_training.history.replay import BESIDE, Row, last_edited, without_interruptions, without_workers
from sigma_training.session.progress import Phase

LEAVING = ("rewind", "reset")  # commands after which training goes on from an earlier iteration
BETWEEN = ("begin", "end", "data", *BESIDE)  # events at a boundary, after the hooks that are due


@frozen
class RunMoment:
    """A moment of a run; without a ``branch``, that on the way to its present state."""

    iteration: int
    branch: int | None = None


@frozen(eq=False)
class JournalPart:
    """The rows of a branch, from where training went on from an iteration, to where it went back from another."""

    branch: int
    start: int
    end: int
    place: int  # of the first row, in the journal
    rows: Sequence[Row]

    @property
    def last_place(self) -> int:
        """Return the place of the last row."""
        return int(self.rows[-1]["place"]) if self.rows else self.place - 1


def find_moment(trainer: str, rows: Sequence[Row], moment: RunMoment) -> JournalPart:
    """Return the part of a trainer's journal in which a moment is; raise SigmaStateError if it knows of none."""
    edited = last_edited(rows)
    parts = split_parts(rows) if edited is None else split_parts(rows[edited + 1 :], rows[: edited + 1])
    return find_part(trainer, parts, moment)


def split_parts(rows: Sequence[Row], before: Sequence[Row] = ()) -> list[JournalPart]:
    """Return the parts of a journal between the commands after which training went on from an earlier iteration.

    The last row ``before`` is a change of settings, which it goes on from.
    """
    rows = without_interruptions(without_workers(rows))
    cuts = [n for n, row in enumerate(rows) if row.get("command") in LEAVING]
    branch = next((row["branch"] for row in reversed(before) if row.get("command") == "rewind"), 0)
    start, place = (before[-1]["from"], before[-1]["place"] + 1) if before else (0, 0)
    parts = list[JournalPart]()
    for first, end in pairwise([-1, *cuts, len(rows)]):
        own, row = rows[first + 1 : end], rows[first] if first >= 0 else {}
        branch, start, place = row.get("branch", branch), row.get("to", start), row.get("place", place - 1) + 1
        start = 0 if row.get("command") == "reset" else start
        reached = rows[end]["iteration"] if end < len(rows) else max((each["iteration"] for each in own), default=start)
        parts.append(JournalPart(branch, start, reached, place, own))
    return parts


def find_part(trainer: str, parts: Sequence[JournalPart], moment: RunMoment) -> JournalPart:
    """Return the part in which a moment is; raise SigmaStateError if there is none."""
    at, branch = moment.iteration, moment.branch
    own = [part for part in parts if branch in (None, part.branch)]
    if not own:
        numbers = ", ".join(dict.fromkeys(str(part.branch) for part in parts))
        raise SigmaStateError(f"{trainer}: has no branch {branch}. There are: {numbers}.")
    reached = (part for part in reversed(own) if at >= part.start)  # each goes on from the one before
    part = next(reached, own[0]) if branch is None else own[-1]
    if not part.start <= at <= part.end:
        raise SigmaStateError(
            f"{trainer}: iteration {at} of branch {part.branch} is not known. It is from {part.start} to {part.end}."
        )
    return part


def leads_to(part: JournalPart, values: Row, number: int, at: int) -> bool:
    """Return whether a checkpoint of an iteration is on the way to a moment of a part."""
    place = values.get("journal", -1)
    if "lacks" in values or values.get("branch", 0) != part.branch or not part.place <= place <= part.last_place + 1:
        return False
    before = (row for row in part.rows if row["place"] < place and row["iteration"] == at)
    changed = (
        row.get("event") in BETWEEN or ("by" not in row and row.get("command", "save") != "save") for row in before
    )
    return number < at or not (any(changed) or Phase.ENDED in values.get("progress", ()))
