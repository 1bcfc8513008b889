"""Taking up a run folder again: where each trainer stood, and what it did after that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaError
from sigma_kernel.training import journal
from sigma_kernel.training.checkpoint import Checkpoint, Say, newest_good, read, saved, write
from sigma_kernel.training.replay import Replay, Row, seamless, tail
from sigma_kernel.training.saving import differences, fit
from sigma_kernel.training.session import Session

MadeWith = Callable[[], dict[str, str]]


def resume(run: Path, session: Session, edits: Sequence[str], made_with: MadeWith, say: Say) -> None:
    """Put a session where its run stood, and let it do again what its journal holds after the newest checkpoint.

    Where none was written yet, or all lie on branches that were left, everything is done again.  With ``edits`` of the
    configuration, only what came from outside is.  Raises SigmaCheckpointError where it cannot be gone on with,
    SigmaConfigError for edits that do not go with the run.
    """
    rows, chronicle, position = _history(run, session.name), session.chronicle, 0
    try:
        path, found = restore(run, session, say, edits)
    except SigmaCheckpointError:
        if not _from_the_beginning(run, session.name, rows):
            raise
        say(f"{run}: has no checkpoint of {session.name!r} to go on from: all is done again from the beginning")
    else:
        for line in differences(found.made_with, made_with()):
            say(f"{path}: {line}: bits may differ from those of an uninterrupted run")
        position, chronicle.branch = found.values.get("journal", len(rows)), found.values.get("branch", 0)
        _keep(session)
        if edits:  # to do again what follows from it
            write(path.with_name(f"{path.name}.edited-{len(rows)}"), found)
    chronicle.records.position = len(rows)
    what = {"event": "resumed", "from": session.clock.moment.iteration, "at": position, "edits": list(edits)}
    session.note(what)
    if left := tail([*rows, what], position):
        chronicle.replay = Replay(deque(left))


def relive(run: Path, session: Session, say: Say) -> None:
    """Let a session do again everything that its journal holds, since its settings were changed last, and compare."""
    rows = journal.rows(run / "journal.jsonl", session.name)
    edited = max((n for n, row in enumerate(rows) if row.get("edits")), default=None)
    if edited is not None:
        start = rows[edited]["from"]
        say(f"{session.name}: settings were changed at iteration {start}; it is done again from there")
        if rows[edited].get("at") != 0:
            session.restore(read(run / "checkpoints" / session.name / f"{start}.edited-{edited}"))
            _keep(session)
        rows = rows[edited + 1 :]
    session.save_as = lambda state: None
    session.chronicle.replay = Replay(deque(seamless(rows)), goes_on=False)


def restore(run: Path, session: Session, say: Say, edits: Sequence[str] = ()) -> tuple[Path, Checkpoint]:
    """Put the newest checkpoint into a session that is whole, fits, and lies on no branch that was left.

    Those that are passed over are named to ``say``.  Raises SigmaCheckpointError, and leaves the session as it was, if
    there is none; SigmaConfigError for edits of the configuration that do not go with it.
    """
    before, rows = session.snapshot(), _history(run, session.name)

    def put(path: Path, found: Checkpoint) -> None:
        if _left(rows, path, found):
            raise SigmaCheckpointError(f"{path}: lies on a branch that was left. Go on from where that was.")
        try:
            fit(path, found, session)
        except SigmaCheckpointError as error:
            if not edits:
                raise
            raise SigmaConfigError(f"{', '.join(edits)}: does not go with this run. {error}") from error

    try:
        return newest_good(run, session.name, say, put)
    except SigmaError:
        session.restore(before)
        raise


def _history(run: Path, trainer: str) -> list[Row]:
    path = run / "journal.jsonl"
    return list(journal.rows(path, trainer)) if path.exists() else []


def _from_the_beginning(run: Path, trainer: str, rows: Sequence[Row]) -> bool:
    """Return whether all can be done again: settings are the same, and no checkpoint is there that should be whole."""
    if not rows or rows[0]["iteration"] or any(row.get("edits") for row in rows):
        return False
    return all(_left(rows, path, read(path)) for path in saved(run, trainer))


def _left(rows: Sequence[Row], path: Path, found: Checkpoint) -> bool:
    """Return whether somebody went back, after a checkpoint was saved, to before it."""
    later = rows[found.values.get("journal", len(rows)) :]
    return any(row.get("command") == "rewind" and row["to"] < int(path.name) for row in later)


def _keep(session: Session) -> None:
    """Keep what was put back, to rewind to: whoever saved it has kept it, too."""
    session.chronicle.past.keep(session.clock.moment, session.snapshot())
