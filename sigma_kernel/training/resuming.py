"""Taking up a run folder again: where each trainer stood, and what it did after that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from sigma_kernel.errors import SigmaCheckpointError, SigmaError
from sigma_kernel.training import commands, journal
from sigma_kernel.training.checkpoint import Checkpoint, Say, read
from sigma_kernel.training.replay import Replay, Row, numbered, seamless, tail
from sigma_kernel.training.saving import differences, restore
from sigma_kernel.training.session import Session

MadeWith = Callable[[], dict[str, str]]


def resume(run: Path, session: Session, edits: Sequence[str], made_with: MadeWith, say: Say) -> None:
    """Put a session where its run stood, and let it do again what its journal holds after the newest checkpoint.

    With ``edits`` of the configuration, only what came from outside is done again.  Raises SigmaCheckpointError where
    no checkpoint is whole.
    """
    saved = _put_back(run, session, made_with, say)
    rows = _journal(run, session)
    left = tail(rows, saved.values.get("journal", len(rows)), strict=not edits)
    chronicle = session.chronicle
    chronicle.branch, chronicle.records.position = saved.values.get("branch", 0), len(rows)
    chronicle.past.keep(session.clock.moment, session.snapshot())  # to rewind to
    session.note({"event": "resumed", "from": saved.values["clock"]["iteration"], "edits": list(edits)})
    if left:
        chronicle.replay = Replay(deque(left), strict=not edits)


def relive(run: Path, session: Session, say: Say) -> None:
    """Let a session do again everything that its journal holds, since its settings were changed last, and compare."""
    rows = _journal(run, session)
    edited = max((n for n, row in enumerate(rows) if row.get("event") == "resumed" and row.get("edits")), default=None)
    if edited is not None:
        start = rows[edited]["from"]
        say(f"{session.name}: settings were changed at iteration {start}; it is done again from there")
        session.restore(read(run / "checkpoints" / session.name / str(start)))
        rows = rows[edited + 1 :]
    session.save_as = lambda state: None
    session.chronicle.replay = Replay(deque(seamless(rows)), goes_on=False)


def _put_back(run: Path, session: Session, made_with: MadeWith, say: Say) -> Checkpoint:
    path = restore(run, session, say)
    saved = read(path)
    for line in differences(saved.made_with, made_with()):
        say(f"{path}: {line}: bits may differ from those of an uninterrupted run")
    return saved


def _journal(run: Path, session: Session) -> list[Row]:
    """Return the rows of a trainer, whose commands can all be given again."""
    path = run / "journal.jsonl"
    rows = numbered(journal.rows(path, session.name))
    for row in rows:
        try:
            if "command" in row:
                commands.from_dict(row)
        except (SigmaError, KeyError, TypeError, ValueError) as error:
            what = f"{row['command']!r} of iteration {row['iteration']} cannot be given again: {error}"
            raise SigmaCheckpointError(f"{path}: {what}. Restore the file from a copy.") from error
    return rows
