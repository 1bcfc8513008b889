"""Replay a journal: apply its commands at the same iterations, and compare the results.

Rows are of two kinds.  Those from *outside* (commands of people, hooks that depend on the wall clock, results from the
background) are applied at the moment that the journal holds.  All others (commands of other hooks, digests of the
state, begin and end of training) must be reproduced, and are compared with the journal.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field, fields

from sigma_kernel.contracts.commanding import Command, Find, make_command
from sigma_kernel.encoding import pack
from sigma_kernel.errors import SigmaCheckpointError, SigmaError, SigmaStateError

Row = Mapping[str, Any]
# fields that may differ between identical runs
ASIDE = ("seconds", "time", "to_seconds", "place", "losses", "why", "good", "stored", "who")
HEAD = ("trainer", "iteration", "epoch", "seconds", "time", "place", "again")
UNSAID = (*HEAD, "state", "losses", "stored")  # fields that a message does not show
AGES = "ages"  # the event, and the field, of gradients that lacked updates in the burst that begins there
LATER = ("fired", "heard", AGES)  # events that a hook meets when it is due, or a burst when it is computed
OF_WORKERS = ("joined", "lost", "generation")  # events that depend on who computes, and change nothing
BESIDE = ("background", "budget")  # events from outside the training thread
DIGITS = 8  # hexadecimal digits of a loss
GOING_ON = ("rewind", "go", "step", "reset")  # commands that go on after a failure
RESUMED = "resumed"  # the event of a resume from a checkpoint
STOP = "stop"  # who saves the state at a stop, which a resume continues as if nothing had stopped it


@define(eq=False)
class Replay:
    """The rows of one trainer that are still to be replayed.

    Rows with ``again`` came from outside under other settings: they are applied and written again, not compared.
    """

    rows: deque[Row]
    goes_on: bool = True  # after the last row, training continues
    left: bool = False  # stopped early: no more rows are applied or compared
    until: int | None = None  # the iteration to stop at, once the rows before ``since`` were replayed
    since: int = 0
    acting: bool = field(default=False, init=False)  # a command is being replayed
    differs: str | None = field(default=None, init=False)  # the first difference, as text

    @property
    def place(self) -> int | None:
        """Return the journal index of the next row; None if all rows in the journal were replayed."""
        return self.rows[0]["place"] if self.rows and "again" not in self.rows[0] else None

    def next_row(self, iteration: int, **wanted: Any) -> Row | None:
        """Return the next row if it is of this iteration and has the wanted entries."""
        row = self.rows[0] if self.rows and not self.left else None
        fits = row is not None and row["iteration"] == iteration and all(row.get(k) == v for k, v in wanted.items())
        return row if fits else None

    def leave(self) -> None:
        """Stop the replay early: apply and compare no more rows."""
        self.left = True

    def begin(self, iteration: int) -> Row | None:
        """Return the next row if training begins here; raise SigmaStateError if the replay was stopped early."""
        if self.left:
            raise SigmaStateError("run: was stopped during its replay. Resume it from its folder again.")
        return self.next_row(iteration, event="begin")

    def iterations_to_next(self, iteration: int) -> int | None:
        """Return the number of iterations until the next row, or the one to stop at, or None if neither is known."""
        goals = [self.rows[0]["iteration"]] if self.rows else []
        goals += [] if self.until is None else [self.until]
        return min((goal - iteration for goal in goals if goal > iteration), default=None)

    def reaches(self, iteration: int) -> bool:
        """Return whether this iteration is the one to stop at, on its branch."""
        return self.until == iteration and (not self.rows or self.rows[0]["place"] >= self.since)

    @property
    def is_over(self) -> bool:
        """Return whether no row is left, and there is no iteration to stop at; after a difference there is none."""
        return not self.rows and (self.until is None or self.differs is not None)

    def pass_by(self, iteration: int) -> None:
        """Take a row of an iteration that is over, which nothing met, for a difference: it will never be met."""
        if self.rows and not self.left and "again" not in self.rows[0] and self.rows[0]["iteration"] < iteration:
            self._compare(
                f"{_describe_row(self.rows[0])} is in the journal; the replay has gone on to iteration {iteration}"
            )

    def next_external(self, iteration: int, find: Find) -> Command | Row | None:
        """Return the next row if it came from outside at this iteration: its command, or else its entries."""
        while (row := self.next_row(iteration, again=True)) is not None and row.get("event") in LATER:
            self.rows.popleft()  # of a hook that was replaced, or a burst that is another one
        row = self.next_row(iteration)
        event = row and row.get("event")
        if row is None or event in LATER or not (event == RESUMED or _from_outside(row)):
            return None
        if "command" in row:
            return command_of_row(find, row)
        return {name: value for name, value in row.items() if name not in HEAD}

    def attempt(self, act: Callable[[], Any], log: Callable[[str], None]) -> None:
        """Apply a command again, and log what it raises, which its sender got the first time.

        If it is refused without a row, that is a difference, unless it was sent under other settings.
        """
        row, self.acting, why = self.rows[0], True, "it changes nothing"
        try:
            act()
        except Exception as error:
            why = str(error)
            log(f"a replayed command was refused: {why}")
        self.acting = False
        if self.rows and self.rows[0] is row:
            self.rows.popleft()
            self._compare(None if "again" in row else f"{_describe_row(row)} cannot be replayed: {why}")

    def rewinds_to(self, iteration: int) -> bool:
        """Return whether a rewind to this iteration is still to be replayed."""
        return any(row.get("command") == "rewind" and row["to"] == iteration for row in self.rows)

    def met(self, row: Row) -> bool:
        """Compare a new row with the next one in the journal; return whether the journal holds it already."""
        if self.left or not self.rows:
            return False
        if "again" in self.rows[0]:
            if _from_outside(row):
                self.rows.popleft()
            return False
        try:
            return self._compare(_difference(load_fields(self.rows.popleft()), row))
        except SigmaCheckpointError as error:  # of a journal that was changed meanwhile
            return self._compare(str(error))

    def _compare(self, difference: str | None) -> bool:
        """Record a difference, after which nothing more is compared; return whether there is none."""
        if difference is not None:
            self.differs = self.differs or difference
            self.rows.clear()
        return difference is None


def load_fields(row: Row) -> Row:
    """Return a row with the fields that were left in the journal."""
    return {**row, **row["stored"].read()} if "stored" in row else row


def command_of_row(find: Find, row: Mapping[str, Any]) -> Command:
    """Return the command of a journal row."""
    try:
        attributes = fields(find("command", row["command"]))
    except SigmaError as error:
        remedy = "Install the plugin that offered this command: the journal cannot be replayed without it."
        raise type(error)(f"{error} {remedy}") from error
    return make_command(find, row["command"], {a.name: row[a.name] for a in attributes if a.name in row})


def check_commands(rows: Iterable[Row], place: str, find: Find) -> None:
    """Raise SigmaCheckpointError for a row whose command would be applied and cannot: unknown here, or invalid."""
    for row in rows:
        try:
            if "command" in row and _from_outside(row):
                command_of_row(find, row)
        except SigmaError as error:
            raise SigmaCheckpointError(f"{place}: {_describe_time(row)}: {error}") from error


def _difference(expected: Row, found: Row) -> str | None:
    """Describe how two rows differ: where first, and in which addresses; None if they are equal.

    Losses are compared only where both rows hold them.
    """
    first = _first_difference(expected.get("losses", ""), found.get("losses", ""))
    original, other = ({name: pack(row[name]) for name in row if name not in ASIDE} for row in (expected, found))
    if first is None and original == other:
        return None
    if not expected.get("event") == found.get("event") == "digest":
        return f"{_describe_row(expected)} is in the journal; the replay has {_describe_row(found)}"
    then, now = expected["state"], found["state"]
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    since = "" if first is None else f", first seen in the loss of iteration {first + found['iteration']}"
    return f"{_describe_time(expected)}: {', '.join(names) or 'losses'} differ{since}"


def _first_difference(then: str, now: str) -> int | None:
    """Return the index of the first loss that differs, counted from the last one: 0, -1, -2 ..."""
    ends = range(-min(len(then), len(now)) // DIGITS * DIGITS, 0, DIGITS)
    return next((i // DIGITS + 1 for i in ends if then[i:][:DIGITS] != now[i:][:DIGITS]), None)


def _describe_time(row: Row) -> str:
    return f"iteration {row['iteration']} (epoch {row['epoch']})"


def _describe_row(row: Row) -> str:
    return f"{_describe_time(row)}: {json.dumps({name: pack(row[name]) for name in row if name not in UNSAID})}"


def without_workers(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that do not depend on who computes."""
    return [row for row in rows if row.get("event") not in OF_WORKERS]


def without_interruptions(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a run as if it had never been interrupted and resumed."""
    kept: list[Row] = []
    for row in rows:
        if row.get("event") == RESUMED:
            del kept[_cut(kept) :]
            _mark_resumed(kept, row)
        else:
            kept.append(row)
    return kept


def _mark_resumed(rows: list[Row], resumed: Row) -> None:
    """Insert the row of a resume at its checkpoint: the state was kept there for rewind, unless a save did so."""
    at = resumed.get("at") or 0
    before = [row for row in rows if row["place"] < at] if at else []
    if before and not (before[-1].get("event") == "digest" and before[-2:][0].get("command") == "save"):
        rows.append({**resumed, "place": at})
        rows.sort(key=lambda row: (row["place"], row.get("event") != RESUMED, row.get("from")))


def end_of_training(row: Row, place: int, known: int | None) -> int | None:
    """Return the place of the row at which training was stopped from outside or failed last, unless it went on."""
    if row.get("event") in ("begin", RESUMED) or row.get("command") in GOING_ON:
        return None
    ends = (row.get("command") == "stop" and "by" not in row) or row.get("good") is not None
    return place if ends and known is None else known


def failure(rows: Sequence[Row]) -> Row | None:
    """Return the end of training if that failed last, and no command went on from there."""
    since = next((n for n in range(len(rows) - 1, -1, -1) if rows[n].get("event") in ("begin", "end", RESUMED)), 0)
    went_on = any(row.get("command") in GOING_ON for row in rows[since:])
    return rows[since] if rows and rows[since].get("good") is not None and not went_on else None


def last_edited(rows: Sequence[Row]) -> int | None:
    """Return the index of the last change of settings, or of the beginning of a fork, if there is one."""
    return max((n for n, row in enumerate(rows) if row.get("edits") or is_fork(row)), default=None)


def is_fork(row: Row) -> bool:
    """Return whether a fork begins with a row, which names its parent."""
    return row.get("event") == RESUMED and "parent" in row


def tail(rows: Sequence[Row], position: int) -> list[Row]:
    """Return the rows to apply after a checkpoint written at ``position``; the last row is the ``resumed`` event.

    Rows since the last change of settings are compared; those from outside before it that were not replayed yet are
    only applied (``again``).
    """
    if (edited := last_edited(rows)) is None:
        return rows_since(position, without_interruptions(rows))
    done = without_interruptions(rows[edited + 1 :])
    before = tail([*rows[:edited], {"event": "resumed"}], rows[edited].get("at") or 0)
    again = [{**row, "again": True} for row in before if _from_outside(row)]
    return rows_since(position, done) + again[sum(map(_from_outside, done)) :]


def rows_since(position: int, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a checkpoint written at ``position`` does not contain yet."""
    return [row for row in rows if row["place"] >= position + (row.get("event") == RESUMED)]


def _from_outside(row: Row) -> bool:
    return "by" not in row and ("command" in row or row["event"] in (*LATER, *BESIDE))


def _cut(rows: list[Row]) -> int:
    """Return the index of the first row that a stop from outside, or a failure, added at the end."""
    if (failed := failure(rows)) is not None:  # what was set in the state that failed is dropped as well
        rows = rows[: rows.index(failed) + 1]
    moved = [n for n, row in enumerate(rows) if "by" not in row and ("command" in row or row["event"] == "begin")]
    if moved and rows[moved[-1]].get("command") == "stop":
        return moved[-1]  # with the save, and what hooks did at the end
    at = len(rows) - (bool(rows) and rows[-1].get("event") == "end")
    return at - (at > 0 and bool(rows[-1].get("failed")) and "error" in rows[at - 1])  # of a hook in the background
