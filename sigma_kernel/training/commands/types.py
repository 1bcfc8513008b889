"""Commands: typed changes from outside, applied by the training thread at a boundary between bursts.

A command that is malformed is refused before it is queued.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import asdict, evolve, field, fields, frozen

from sigma_kernel import settings
from sigma_kernel.clock import TimeScale
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, near

SLOTS = ("optimiser", "backend", "iterator")  # kinds of components that can be swapped
SCALE = settings.in_((TimeScale.ITERATION.value, TimeScale.EPOCH.value))
TEXT = settings.instance_of(str, "a text")


@frozen
class Command:
    """A change; its fields are plain JSON values."""

    def to_dict(self) -> dict[str, Any]:
        """Return the command as the journal writes it."""
        return {"command": NAMES[type(self)], **asdict(self)}


def _score(made: Command, _: Any, score: Any) -> None:
    """Refuse what is no number; one that is not finite is."""
    if score is not None and (not isinstance(score, int | float) or isinstance(score, bool)):
        raise SigmaConfigError(f"{type(made).__name__}.score: must be a number (got {score!r}).")


def _written(made: Command, attribute: Any, component: Any) -> None:
    """Hold a component as the journal does: a name, or a table of plain values with its type."""
    try:
        plain = json.loads(
            json.dumps({"type": component} if isinstance(component, str) else dict(component), allow_nan=False)
        )
    except (TypeError, ValueError):  # said below
        plain = {}
    if not isinstance(plain.get("type"), str):
        got = repr(component) if plain or isinstance(component, Mapping) else type(component).__name__
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be a name, or a table of plain values with its 'type', "
            f"to be written down and done again (got {got}). Write {{'type': 'name', 'setting': 1}}."
        )
    object.__setattr__(made, attribute.name, component if isinstance(component, str) else plain)


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

    count: int = field(default=1, validator=[settings.whole, settings.ge(1)])
    scale: str = field(default="iteration", validator=SCALE)


@frozen
class Stop(Command):
    """End training after the present burst; ``cause`` says why, if it was not a person's wish."""

    cause: str = ""


@frozen
class Save(Command):
    """Write a checkpoint; ``score`` is what the best are chosen by, and one to ``keep`` is never cleared away."""

    cause: str = ""
    score: float | None = field(default=None, validator=_score)
    keep: bool = False


@frozen
class Rewind(Command):
    """Go back to the newest state that is kept from a moment or earlier, and go on as a new branch."""

    to: int = field(validator=[settings.whole, settings.ge(0)])
    scale: str = field(default="iteration", validator=SCALE)


@frozen
class Reset(Command):
    """Go back to the initial state, at iteration 0, and go on from there."""


@frozen
class Attach(Command):
    """Add a hook: the name of a component, or a table ``{"type": name, setting: value}``."""

    name: str = field(validator=TEXT)
    hook: Any = field(validator=_written)


@frozen
class Detach(Command):
    """Take a hook away, and forget what it remembers."""

    name: str = field(validator=TEXT)


@frozen
class Swap(Command):
    """Put another component into a slot: ``optimiser``, ``backend`` or ``iterator``."""

    slot: str = field(validator=settings.in_(SLOTS))
    component: Any = field(validator=_written)


@frozen
class Undo(Command):
    """Undo the last command from outside that set, attached, detached or swapped something."""


def in_full(made: Command, name: Callable[[str, Any], Any]) -> Command:
    """Return a command with the full names of components, by which they are written down."""
    match made:
        case Attach(_, hook):
            return evolve(made, hook=name("hook", hook))
        case Swap(slot, component):
            return evolve(made, component=name(slot, component))
    return made


KINDS: dict[str, type[Command]] = {
    "set": Set, "pause": Pause, "go": Go, "step": StepBy, "stop": Stop, "save": Save, "rewind": Rewind, "reset": Reset,
    "attach": Attach, "detach": Detach, "swap": Swap, "undo": Undo,
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
    except SigmaConfigError as error:  # what is wrong with an argument, after the name of a class
        raise SigmaStateError(f"command {name!r}: {str(error).partition('.')[2]}") from None


def from_dict(row: Mapping[str, Any]) -> Command:
    """Return the command that a row of the journal holds."""
    known = fields(KINDS[row["command"]]) if row["command"] in KINDS else ()
    return command(row["command"], {a.name: row[a.name] for a in known if a.name in row})
