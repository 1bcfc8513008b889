"""Resume or replay a stored run: restore a checkpoint, and replay the journal after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import evolve

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.storing import Checkpoint, Checkpoints, Excerpt, Log, StoredRun
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaDataError, error_text
from sigma_training.compatibility import check_fit, differences
from sigma_training.components import Learned
from sigma_training.data.identity import changed_rows, describe_rows
from sigma_training.history.replay import (
    RESUMED,
    Replay,
    Row,
    check_commands,
    failure,
    is_fork,
    last_edited,
    load_fields,
    rows_since,
    tail,
    without_interruptions,
    without_workers,
)
from sigma_training.hooks.order import meet
from sigma_training.hooks.outlook import renew
from sigma_training.runs.moments import JournalPart, RunMoment, find_moment, leads_to
from sigma_training.session.session import Session

FEEDING = ("batch_size", "last_batch", "iterator", "preprocessors", "augmentations")  # no settings of a data set
CHANGED = (
    "Restore them; or use these on purpose: --data PATH, or in Python load(RUN), then trainer.data = ... or "
    "evaluate(data)."
)
Restored = tuple[str, Checkpoint]  # with its label
EDITED = "Some were left out or relabelled by their numbers: restore the rows, or undo that first."


def restore_newest(run: StoredRun, session: Session, part: Excerpt, edits: Sequence[str], log: Log) -> Restored | None:
    """Restore the newest checkpoint of a session; return None if its whole journal is to be replayed.

    That is so without a checkpoint, or if all are on abandoned branches.
    """
    name, rows, restored = session.setup.name, part.rows(session.setup.name), None
    try:
        restored = restore(run, session, log, edits, rows)
    except SigmaCheckpointError:
        if not part.is_complete or not _from_the_beginning(run, name, rows):
            raise
        log(f"{run.place}: has no checkpoint of {name!r} to resume from: everything is replayed")
    since = restored[1].values.get("journal", 0) if restored else 0
    check_commands(tail([*rows, {"event": RESUMED}], since), part.place, session.commands.find)
    return restored


def resume(
    run: StoredRun,
    session: Session,
    part: Excerpt,
    restored: Restored | None,
    edits: Sequence[str],
    log: Log,
    paused: bool,
    who: str = "",
) -> None:
    """Replay the journal after the checkpoint that a session was restored from, or all of it.

    With ``edits`` of the configuration, only rows from outside are applied again.
    """
    name, recorder, position, branch = session.setup.name, session.recorder, 0, 0
    rows, before, checkpoints = part.rows(name), part.count_before(name), run.checkpoints(name)
    failed, edited = failure(rows), edited_values(session, edits, rows)
    if restored is not None:
        label, checkpoint = restored
        for line in differences(checkpoint.made_with, session.checkpoints.made_with()):
            log(f"{checkpoints.place(label)}: {line}: bits may differ from those of an uninterrupted run")
        position, branch = checkpoint.values.get("journal", 0), checkpoint.values.get("branch", 0)
        if more_asked(name, edits, rows, position) and not session.progress.underway:
            renew(session.setup.order, session.state.memory)
            checkpoint = evolve(checkpoint, values={**checkpoint.values, "hooks": session.snapshot().values["hooks"]})
        recorder.past.keep(session.moment, session.snapshot())  # as the session that saved it did
        if edits:  # for a later replay, which starts here
            checkpoints.write(f"{label}.edited-{before[0] + len(rows)}", drop_edited_values(checkpoint, edited))
    if failed is not None:
        log(describe_failure(name, failed, session.moment.iteration, edits))
        checkpoints.set_aside(session.moment.iteration, branch)  # else they would be taken for newer ones
    recorder.follow(rows, before, branch, session.moment.iteration)
    row = {"event": RESUMED, "from": session.moment.iteration, "at": position, "edits": list(edits)}
    every = tail([*without_workers(rows), row], position)
    left = [load_fields(row) for row in every if not is_overridden(row, edited)]
    written = {**row, "configuration": recorder.journal.configuration, **({"who": who} if who else {})}
    session.replayer.resume(Replay(deque(left)) if left else None, written, paused)


def describe_failure(trainer: str, failed: Row, iteration: int, edits: Sequence[str]) -> str:
    """Return where a resume begins after a failure, and why."""
    how, why = "failed" if failed["failed"] else "ended", failed.get("why", "the loss is not finite.")
    text = f"{trainer}: goes back to iteration {iteration}, the last good one; the run {how} at iteration"
    again = "" if edits else " Nothing is changed, so it may fail again; --set changes a setting."
    return f"{text} {failed['iteration']}: {why}{again}"


def edited_values(session: Session, edits: Sequence[str], rows: Sequence[Row]) -> set[str]:
    """Return the live values that edits of the configuration set after a failure, whatever commands set before it."""
    keys = [edit.partition("=")[0].replace('"', "").strip() for edit in edits]
    heads = ("trainer.", f"trainers.{session.setup.name}.")
    own = [key.removeprefix(head) for key in keys for head in heads if key.startswith(head)] if failure(rows) else []
    under = {name for name in session.setup.live.base for key in own if name.startswith(f"{key}.")}
    return {name for key in own for name in (key, *session.setup.group(key))} | under


def drop_edited_values(found: Checkpoint, edited: Iterable[str]) -> Checkpoint:
    """Return a checkpoint without the live values that edits of the configuration set."""
    live = {name: base for name, base in found.values.get("live", {}).items() if name not in edited}
    return evolve(found, values={**found.values, "live": live})


def is_overridden(row: Row, edited: Iterable[str]) -> bool:
    """Return whether a row sets, under other settings, what an edit of the configuration sets."""
    return "again" in row and row.get("command") == "set" and any(meet(row["pattern"], name) for name in edited)


def more_asked(trainer: str, edits: Sequence[str], rows: Sequence[Row], position: int) -> bool:
    """Return whether a total of epochs was asked for since the checkpoint at a position: now, or before a crash."""
    return not _list_edited(edits, rows, position).isdisjoint({"trainer.epochs", f"trainers.{trainer}.epochs"})


def _list_edited(edits: Sequence[str], rows: Sequence[Row], position: int) -> set[str]:
    """Return the settings that were changed since the checkpoint at a position: now, or before a crash."""
    asked = [*edits, *(edit for row in rows if row.get("at") == position for edit in row.get("edits", ()))]
    return {edit.partition("=")[0].replace('"', "").strip() for edit in asked}


def _gives_data(trainer: str, edits: Sequence[str], rows: Sequence[Row], position: int) -> bool:
    """Return whether settings of the data set were changed since the checkpoint at a position."""
    own = (key.removeprefix(f"trainers.{trainer}.") for key in _list_edited(edits, rows, position))
    return any(key.startswith("data.") and key.split(".")[1] not in FEEDING for key in own)


def replay(run: StoredRun, session: Session, part: Excerpt, log: Log) -> None:
    """Replay all rows of a journal since the last change of settings, and compare.

    Raises SigmaCheckpointError if the beginning of the journal was lost.
    """
    rows = begin_replay(run, session, part, log)
    session.recorder.compare(Replay(deque(rows), goes_on=False))


def begin_replay(run: StoredRun, session: Session, part: Excerpt, log: Log) -> list[Row]:
    """Go to the last change of settings, or stay at the beginning; return the rows of the journal since then.

    Raises SigmaCheckpointError if the beginning of the journal was lost.
    """
    name, rows = session.setup.name, part.rows(session.setup.name)
    check_rows(read_newest(run, name, whole=False), session)
    if rows and rows[0]["place"]:
        raise SigmaCheckpointError(
            f"{part.place}: begins at iteration {rows[0]['iteration']}: the journal before it was lost. The run can be "
            "resumed, but not replayed."
        )
    if (edited := last_edited(rows)) is not None:
        start = rows[edited]["from"]
        what = "it is a fork that begins" if is_fork(rows[edited]) else "settings were changed"
        log(f"{name}: {what} at iteration {start}; the replay begins there")
        if rows[edited].get("at") != 0:
            saved_then = run.checkpoints(name).read(f"{start}.edited-{edited}", log)
            session.restore(saved_then)
            session.recorder.begin(saved_then.values.get("branch", 0), start)
            session.recorder.past.keep(session.moment, session.snapshot())
        rows = rows[edited + 1 :]
        back = [row for row in rows if row.get("command") == "rewind" and row["to"] < start]
        for row in {row["to"]: row for row in reversed(back)}.values():  # the first that goes to before the replay
            checkpoint = _gone_back_to(run.checkpoints(name), row, log)
            session.recorder.past.keep(Moment(**checkpoint.values["clock"]), checkpoint, pinned=True)
    check_commands(rows, part.place, session.commands.find)
    return without_interruptions(without_workers(rows))


def go_to(run: StoredRun, session: Session, journal: Excerpt, moment: RunMoment, log: Log) -> None:
    """Prepare a session to replay the journal of a run up to a moment; raise SigmaStateError for one it does not know.

    Raises SigmaCheckpointError if the journal does not reach back to any state before it.
    """
    name = session.setup.name
    part = find_moment(name, journal.rows(name), moment)
    label, base = _select_base(run.checkpoints(name), part, moment.iteration)
    if base is None:
        rows = begin_replay(run, session, journal, log)
    else:
        fit(run.checkpoints(name).place(label), base, session)
        session.recorder.begin(part.branch, session.moment.iteration)
        session.recorder.past.keep(session.moment, session.snapshot())
        rows = rows_since(base.values["journal"], part.rows)
    left = deque(row for row in rows if row["place"] <= part.last_place)
    session.recorder.compare(Replay(left, goes_on=False, until=moment.iteration, since=part.place))


def _select_base(checkpoints: Checkpoints, part: JournalPart, at: int) -> tuple[str, Checkpoint | None]:
    """Return the newest intact checkpoint of a part at or before an iteration, with its label; None without any."""
    for number in (number for number in reversed(checkpoints.numbers()) if part.start <= number <= at):
        with suppress(SigmaCheckpointError):  # an older one will do
            values = checkpoints.read_manifest(str(number), _silent)["values"]
            if leads_to(part, values, number, at):
                return str(number), checkpoints.read(str(number), _silent)
    return "", None


def _gone_back_to(checkpoints: Checkpoints, rewind: Row, log: Log) -> Checkpoint:
    """Return the state that a rewind restored, from the checkpoint that it wrote: that may have been left since."""
    candidates = (checkpoints.read(label, log) for label in checkpoints.list_abandoned(rewind["to"]))
    own = (checkpoint for checkpoint in candidates if checkpoint.values.get("branch") == rewind["branch"])
    return next(own, None) or checkpoints.read(str(rewind["to"]), log)


def restore(
    run: StoredRun, session: Session, log: Log, edits: Sequence[str] = (), rows: Sequence[Row] = ()
) -> Restored:
    """Restore the newest checkpoint that is intact, fits the session, and is not on an abandoned branch.

    After a failure it is the last good one, without the live values that are edited.  Others are logged.  Raises
    SigmaCheckpointError, and leaves the session as it was, if there is none; SigmaConfigError for edits of the
    configuration that do not fit it.
    """
    name, failed = session.setup.name, failure(rows)
    edited, checkpoints = edited_values(session, edits, rows), run.checkpoints(name)

    def put(label: str, found: Checkpoint) -> None:
        path = checkpoints.place(label)
        if is_abandoned(rows, int(label), found):
            raise SigmaCheckpointError(f"{path}: is on an abandoned branch. Use a checkpoint of the current one.")
        given = _gives_data(session.setup.name, edits, rows, found.values.get("journal", 0))
        try:
            fit(path, drop_edited_values(found, edited), session, log if given else None)
        except SigmaCheckpointError as error:
            if not edits:
                raise
            raise SigmaConfigError(f"{', '.join(edits)}: does not fit this run. {error}") from error

    good = [] if failed is None else [number for number in checkpoints.numbers() if number <= failed["good"]]
    return checkpoints.newest(log, put, good[::-1])


def fit(path: Path | str, found: Checkpoint, session: Session, accepted: Log | None = None) -> None:
    """Restore a checkpoint, with the components that it was saved with.

    Raises SigmaCheckpointError, and leaves the session as it was, if it does not fit; SigmaDataError for rows that have
    changed, unless these are ``accepted``, which is logged.
    """
    name = session.setup.name
    if lacks := found.values.get("lacks"):
        raise SigmaCheckpointError(
            f"{path}: lacks {', '.join(map(str, lacks))}, which were too large to save. It can predict; to train on, "
            "use another checkpoint."
        )
    check_rows(found, session, accepted)
    try:
        session.restore(found, check=lambda saved, arrays: check_fit(path, saved, name, arrays))
    except SigmaCheckpointError:
        raise
    except Exception as error:
        raise SigmaCheckpointError(f"{path}: does not fit: {error_text(error):.200} Use another checkpoint.") from error


def check_rows(found: Checkpoint, session: Session, accepted: Log | None = None) -> None:
    """Raise SigmaDataError if the rows are not those of a checkpoint; if it is ``accepted``, log it."""
    name, setup, learned = session.setup.name, session.setup, Learned.from_checkpoint(found.values, {})
    try:
        now = describe_rows(setup.evaluator.splits, learned.facts_of("samples"), setup.model.sections)
        changed = changed_rows(learned.facts_of("rows"), now)  # earlier versions do not describe them
    except (AttributeError, LookupError, TypeError) as error:
        raise SigmaCheckpointError(
            f"{name}: its rows are not described: {error_text(error)} Use another checkpoint."
        ) from error
    edited = changed.keys() & found.values.get("changes", {}).get("edits", {})
    if changed and (edited or accepted is None):
        remedy = EDITED if edited else CHANGED
        raise SigmaDataError(f"{name}: {'; '.join(changed.values())}. {remedy}")
    for line in changed.values():
        (accepted or _silent)(f"{name}: {line}")


def read_newest(run: StoredRun, trainer: str, whole: bool) -> Checkpoint:
    """Return the newest intact checkpoint, its arrays only if the ``whole`` is read; an empty one if there is none."""
    checkpoints = run.checkpoints(trainer)
    for number in reversed(checkpoints.numbers()):
        with suppress(SigmaCheckpointError):  # restoring it raises the error
            if whole:
                return checkpoints.read(str(number), _silent)
            return Checkpoint({}, checkpoints.read_manifest(str(number), _silent)["values"])
    return Checkpoint({}, {})


def _silent(text: str) -> None:
    """Log nothing: restoring a checkpoint logs it."""


def _from_the_beginning(run: StoredRun, trainer: str, rows: Sequence[Row]) -> bool:
    """Return whether the whole journal can be replayed: same settings, and no checkpoint but of abandoned branches."""
    if not rows or rows[0]["iteration"] or any(row.get("edits") for row in rows):
        return False
    checkpoints = run.checkpoints(trainer)
    return all(is_abandoned(rows, number, checkpoints.read(str(number), _silent)) for number in checkpoints.numbers())


def is_abandoned(rows: Sequence[Row], number: int, found: Checkpoint) -> bool:
    """Return whether a rewind, after the checkpoint of an iteration was saved, went back to before it."""
    later = [row for row in rows if row["place"] >= found.values.get("journal", len(rows))]
    return any(row.get("command") == "rewind" and row["to"] < number for row in later)
