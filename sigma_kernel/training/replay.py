"""A journal read again: what a run did is done again at the same moments, and compared.

Rows are of two kinds.  What came from *outside* (commands of people, hooks that go by the wall clock, results from the
background) is injected where the journal says that it acted.  Everything else (commands of other hooks, digests of
the state, beginnings and ends) must come about by itself, and is compared with what the journal holds.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel.training import commands
from sigma_kernel.training.commands import Command
from sigma_kernel.training.journal import encoded

Row = Mapping[str, Any]
ASIDE = ("seconds", "place", "losses")  # what may differ between two runs that are the same
HEAD = ("trainer", "iteration", "epoch", "seconds", "place")
BESIDE = ("background", "budget")  # events that come from beside the training thread
DIGITS = 8  # of a loss, hexadecimal
STOP = "stop"  # on whose behalf a state is saved that goes on as if it had never been stopped


@define(eq=False)
class Replay:
    """The rows of one trainer that are still to come."""

    rows: deque[Row]
    strict: bool = True  # compare; else only inject what came from outside
    goes_on: bool = True  # freely, after the last row
    differs: str | None = field(default=None, init=False)  # the first difference, in words

    def next(self, iteration: int, **wanted: Any) -> Row | None:
        """Return the next row, if it belongs to this iteration and holds what is wanted."""
        row = self.rows[0] if self.rows else None
        fits = row is not None and row["iteration"] == iteration and all(row.get(k) == v for k, v in wanted.items())
        return row if fits else None

    def ahead(self, iteration: int) -> int | None:
        """Return the number of iterations until the next row, or None if that is not known."""
        later = self.rows[0]["iteration"] - iteration if self.rows else 0
        return later if later > 0 else None

    def outside(self, iteration: int) -> Command | Row | None:
        """Return what came from outside at this moment, if it is next: a command, or the row of what came otherwise."""
        row = self.next(iteration)
        if row is None or "by" in row or ("command" not in row and row["event"] not in BESIDE):
            return None
        if not self.strict:
            self.rows.popleft()
        if "command" in row:
            return commands.from_dict(row)
        return {name: value for name, value in row.items() if name not in HEAD}

    def says(self, iteration: int, what: Row) -> bool:
        """Return whether the next row is this one, of something that acted from outside."""
        found = self.next(iteration, **what) is not None
        if found and not self.strict:
            self.rows.popleft()
        return found

    def rewinds_to(self, iteration: int) -> bool:
        """Return whether a rewind to this iteration is still to come."""
        return any(row.get("command") == "rewind" and row["to"] == iteration for row in self.rows)

    def met(self, row: Row) -> bool:
        """Compare what has just happened with the next row; return whether the journal holds it already."""
        if not self.strict or not self.rows:
            return False
        expected, found = self.rows.popleft(), json.loads(encoded(row))
        if _differ(expected, found):
            self.differs = self.differs or _difference(expected, found)
            self.rows.clear()
            return False
        return True


def _differ(expected: Row, found: Row) -> bool:
    """Return whether two rows say different things; of losses, only those count that both know."""
    apart = _first(expected.get("losses", ""), found.get("losses", "")) is not None
    return apart or _without(expected) != _without(found)


def _without(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ASIDE}


def _difference(expected: Row, found: Row) -> str:
    """Return in words how two rows differ: where first, and in which addresses."""
    place = f"iteration {expected['iteration']} (epoch {expected['epoch']})"
    if expected.get("event") != "digest" or found.get("event") != "digest":
        return f"{place}: the journal holds {_said(expected)}; now it is {_said(found)}"
    then, now = expected["state"], found["state"]
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    first = _first(expected["losses"], found["losses"])
    since = "" if first is None else f", first seen in the loss of iteration {first + found['iteration']}"
    return f"{place}: {', '.join(names) or 'losses'} differ{since}"


def _first(then: str, now: str) -> int | None:
    """Return the place of the first loss that differs, counted from the last one: 0, -1, -2 ..."""
    ends = range(-min(len(then), len(now)) // DIGITS * DIGITS, 0, DIGITS)
    return next((i // DIGITS + 1 for i in ends if then[i:][:DIGITS] != now[i:][:DIGITS]), None)


def _said(row: Row) -> str:
    about = {name: value for name, value in row.items() if name not in (*HEAD, "state")}
    return json.dumps(about)


def numbered(rows: Iterable[Row]) -> list[Row]:
    """Return rows that know their place in the journal."""
    return [{**row, "place": place} for place, row in enumerate(rows)]


def seamless(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a run as if it had never been interrupted and resumed."""
    kept: list[Row] = []
    for row in rows:
        if row.get("event") == "resumed":
            del kept[_cut(kept) :]
        else:
            kept.append(row)
    return kept


def tail(rows: Sequence[Row], position: int, strict: bool) -> list[Row]:
    """Return what is still to be done after a checkpoint: without an interruption at the end.

    Where it cannot come out the same (``strict`` is False), only what came from outside.
    """
    left = seamless([*rows[position:], {"event": "resumed"}])
    return left if strict else [row for row in left if _from_outside(row)]


def _from_outside(row: Row) -> bool:
    return "by" not in row and ("command" in row or row["event"] in ("fired", *BESIDE))


def _cut(rows: list[Row]) -> int:
    """Return where the rows begin that a stop from outside, or a failure, added at the end."""
    at = len(rows) - (bool(rows) and rows[-1].get("event") == "end")
    at -= at > 0 and bool(rows[-1].get("failed")) and "error" in rows[at - 1]  # of a hook in the background
    saved = at > 2 and rows[at - 1].get("by") == STOP
    at -= 2 * saved
    return at - (at > 0 and rows[at - 1].get("command") == "stop" and "by" not in rows[at - 1])
