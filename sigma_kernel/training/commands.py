"""Commands: typed changes from outside, applied by the training thread at a boundary between bursts.

A command that is malformed is refused before it is queued.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import asdict, field, fields, frozen

from sigma_kernel.clock import TimeScale
from sigma_kernel.errors import SigmaStateError, near


@frozen
class Command:
    """A change; its fields are plain JSON values."""

    def to_dict(self) -> dict[str, Any]:
        """Return the command as the journal writes it."""
        return {"command": NAMES[type(self)], **asdict(self)}


def _counted(command: str, count: Any, least: int) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        raise SigmaStateError(f"{command}: the count must be a whole number from {least} on (got {count!r}).")


def _scale(command: str, scale: Any) -> None:
    if scale not in (TimeScale.ITERATION.value, TimeScale.EPOCH.value):
        raise SigmaStateError(f"{command}: the scale must be 'iteration' or 'epoch' (got {scale!r}).")


@frozen
class Set(Command):
    """Set every value that an address pattern names; addresses start at the trainer."""

    pattern: str
    value: Any


@frozen
class Pause(Command):
    """Stop after the present burst, and wait."""


@frozen
class Go(Command):
    """Go on after a pause."""


@frozen
class StepBy(Command):
    """Go on for so many ticks of a time scale, then pause again."""

    count: int = field(default=1)
    scale: str = "iteration"

    def __attrs_post_init__(self) -> None:
        """Refuse steps that cannot be made."""
        _counted("step", self.count, 1)
        _scale("step", self.scale)


@frozen
class Stop(Command):
    """End training after the present burst; ``cause`` says why, if it was not a person's wish."""

    cause: str = ""


@frozen
class Save(Command):
    """Write a checkpoint; ``score`` is what the best are chosen by, and one to ``keep`` is never cleared away."""

    cause: str = ""
    score: float | None = None
    keep: bool = False

    def __attrs_post_init__(self) -> None:
        """Refuse a score that is no number."""
        if self.score is not None and (not isinstance(self.score, int | float) or isinstance(self.score, bool)):
            raise SigmaStateError(f"save: the score must be a number (got {self.score!r}).")


@frozen
class Rewind(Command):
    """Go back to the newest state that is kept from a moment or earlier, and go on as a new branch."""

    to: int
    scale: str = "iteration"

    def __attrs_post_init__(self) -> None:
        """Refuse moments that there are not."""
        _counted("rewind", self.to, 0)
        _scale("rewind", self.scale)


@frozen
class Reset(Command):
    """Go back to the initial state, at iteration 0, and go on from there."""


KINDS: dict[str, type[Command]] = {
    "set": Set, "pause": Pause, "go": Go, "step": StepBy, "stop": Stop, "save": Save, "rewind": Rewind, "reset": Reset,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}


def command(name: str, arguments: Mapping[str, Any]) -> Command:
    """Return the command of that name; SigmaStateError if there is none, or its arguments do not fit."""
    if name not in KINDS:
        raise SigmaStateError(f"command {name!r}: unknown.{near(name, KINDS)} Known are {', '.join(KINDS)}.")
    known = [a.name for a in fields(KINDS[name])]
    for argument in arguments:
        if argument not in known:
            raise SigmaStateError(f"command {name!r}: has no {argument!r}.{near(argument, known)}")
    try:
        return KINDS[name](**arguments)
    except TypeError:
        raise SigmaStateError(f"command {name!r}: needs {', '.join(known)}.") from None


def from_dict(row: Mapping[str, Any]) -> Command:
    """Return the command that a row of the journal holds."""
    kind = KINDS[row["command"]]
    return command(row["command"], {a.name: row[a.name] for a in fields(kind) if a.name in row})
