"""What commands do to a session; a command that cannot act says why, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import astuple, evolve

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.commands.changes import Changes
from sigma_kernel.training.commands.undo import carry_out, check_free, undo, undoable
from sigma_kernel.training.history.chronicle import Saves
from sigma_kernel.training.history.replay import STOP
from sigma_kernel.training.session.loop import Session


def act(session: Session, command: commands.Command) -> Moment:
    """Let a command act now, after it is written to the journal, and return the moment."""
    match command:
        case commands.Set() | commands.Attach() | commands.Detach() | commands.Swap():
            carry_out(session, command, partial(_change, session, command))
        case commands.Undo():
            undo(session)
        case commands.Pause():
            _expect(session, command)
            session.pause()
        case commands.Go():
            _expect(session, command)
            session.go()
        case commands.StepBy(count, scale):
            _expect(session, command)
            session.pause_at = session.ahead(**{f"{scale}s": count})
            session.go()
        case commands.Stop():
            _stop(session, command)
        case commands.Save():
            if session.save_as is None:
                folder = "Environment(..., folder='runs')"
                raise SigmaStateError(f"save: this environment has no folder. Give it one: {folder}.")
            if session.halted and session.control.status in ("running", "paused"):
                return session.clock.moment  # it is saved as it was when it was stopped
            session.chronicle.lastly(command, partial(_save, session))
        case commands.Rewind():
            _rewind(session, command)
        case commands.Reset():
            session.note(command.to_dict())
            session.reset()
            session.tick(TimeScale.RESET)
    return session.clock.moment


def check(session: Session, command: commands.Command) -> None:
    """Refuse, before it is queued, what surely cannot act: a component that is unknown, for instance."""
    check_free(session)
    match command:
        case commands.Set(pattern, value):
            for address in session.registry.addresses(pattern):
                session.registry.kind(address).check(f"{session.name}.{address}", value)
        case commands.Attach() | commands.Detach() | commands.Swap():
            _wanted(session, command)
        case commands.Undo():
            undoable(session)


def _change(session: Session, command: commands.Command) -> None:
    if isinstance(command, commands.Set):
        session.registry.set(command.pattern, command.value)
    else:
        session.remake(session, _wanted(session, command))


def _wanted(session: Session, command: commands.Command) -> Changes:
    """Return how the components are to differ from those of the settings."""
    workshop = session.makeup.workshop
    wanted: dict[type, Callable[..., Changes]] = {
        commands.Attach: workshop.attached, commands.Detach: workshop.detached, commands.Swap: workshop.swapped,
    }  # fmt: skip
    return wanted[type(command)](session.makeup.changes, *astuple(command, recurse=False))


def _expect(session: Session, command: commands.Command) -> None:
    """Write a command down; SigmaStateError where it does not concern a session as that is now."""
    name, status = commands.NAMES[type(command)], session.control.status
    if status not in (wanted := commands.CONCERNED[name]):
        raise SigmaStateError(f"{session.name}: cannot {name} while {status}. It must be {wanted[0]} for that.")
    session.note(command.to_dict())


def _stop(session: Session, command: commands.Stop) -> None:
    """End at this boundary; who is stopped from outside saves first, to be resumed as if that had never been."""
    if session.control.over or not session.control.busy:
        return
    place = session.chronicle.position
    session.note(command.to_dict())
    session.control.over = True
    if not session.chronicle.inside:
        session.halted = True
        if session.save_as is not None:
            with session.chronicle.on_behalf(STOP):
                _save(session, [(STOP, commands.Save(command.cause))], place)


def _save(session: Session, wanted: Saves, place: int | None = None) -> None:
    """Write one checkpoint that stands at a place of the journal, by default the present one.

    It is kept if anybody wants that; of several scores, the last one counts.
    """
    assert session.save_as is not None  # it was asked for
    chronicle = session.chronicle
    for by, save in wanted:
        with chronicle.on_behalf(by):
            session.note(save.to_dict())
    state = session.snapshot()
    chronicle.past.keep(session.clock.moment, state)  # so does who resumes from it: both rewind to the same
    chronicle.digest(session.clock.moment, state, session.runner)
    about = {"journal": chronicle.position if place is None else place, "branch": chronicle.branch}
    score = next((save.score for _, save in reversed(wanted) if save.score is not None), None)
    keep = any(save.keep for _, save in wanted)
    session.save_as(evolve(state, values={**state.values, **about}, score=score, keep=keep))


def _rewind(session: Session, command: commands.Rewind) -> None:
    """Go back to a state that is kept, and go on from it as a new branch."""
    chronicle = session.chronicle
    moment, state = chronicle.past.before(command.to, command.scale)
    branch = {"branch": chronicle.branch + 1, "parent": chronicle.branch}
    session.note({**commands.Rewind(moment.iteration).to_dict(), **branch})
    chronicle.branch += 1
    goals = session.pause_at, session.until
    session.restore(state)
    session.midway, (session.pause_at, session.until) = "", goals
    if session.save_as is not None:
        with chronicle.on_behalf("rewind"):
            act(session, commands.Save())
    session.forsake(moment.iteration, chronicle.branch - 1)  # now that there is a checkpoint to go on from
