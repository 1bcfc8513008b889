"""Commands: typed changes from outside, applied by the training thread at a boundary between bursts.

A command that is malformed is refused before it is queued.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import asdict, evolve, field, fields, frozen

from sigma_kernel.clock import TimeScale
from sigma_kernel.errors import SigmaStateError, near

SLOTS = {"optimiser": "optimiser", "backend": "backend", "order": "iterator"}  # what can be swapped, and its kind


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


def _written(command: str, component: Any) -> Any:
    """Return a component as the journal holds it: a name, or a table with its type."""
    table = {"type": component} if isinstance(component, str) else component
    try:
        plain = json.loads(json.dumps(dict(table), allow_nan=False))
        if isinstance(plain["type"], str):
            return component if isinstance(component, str) else plain
    except (TypeError, ValueError, KeyError):  # said below
        plain = None
    got = repr(component) if plain is not None or isinstance(component, Mapping) else type(component).__name__
    raise SigmaStateError(
        f"{command}: a component must be a name, or a table of plain values with its 'type', to be written down and "
        f"done again (got {got}). Write {{'type': 'name', 'setting': 1}}."
    )


def _name(command: str, name: Any) -> None:
    if not isinstance(name, str):
        raise SigmaStateError(f"{command}: a name must be a text (got {name!r}).")


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


@frozen
class Attach(Command):
    """Add a hook: the name of a component, or a table ``{"type": name, setting: value}``."""

    name: str
    hook: Any

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be written down."""
        _name("attach", self.name)
        object.__setattr__(self, "hook", _written("attach", self.hook))


@frozen
class Detach(Command):
    """Take a hook away, and forget what it remembers."""

    name: str

    def __attrs_post_init__(self) -> None:
        """Refuse what is no name."""
        _name("detach", self.name)


@frozen
class Swap(Command):
    """Put another component into a slot: ``optimiser``, ``backend`` or ``order``."""

    slot: str
    component: Any

    def __attrs_post_init__(self) -> None:
        """Refuse other slots, and what cannot be written down."""
        _name("swap", self.slot)
        if self.slot not in SLOTS:
            known = near(self.slot, SLOTS) or f" What can be is {', '.join(SLOTS)}."
            raise SigmaStateError(f"swap: {self.slot!r} cannot be swapped while a run goes on.{known}")
        object.__setattr__(self, "component", _written("swap", self.component))


def in_full(made: Command, name: Callable[[str, Any], Any]) -> Command:
    """Return a command with the full names of components, by which they are written down."""
    match made:
        case Attach(_, hook):
            return evolve(made, hook=name("hook", hook))
        case Swap(slot, component):
            return evolve(made, component=name(SLOTS[slot], component))
    return made


@frozen
class Undo(Command):
    """Undo the last command from outside that set, attached, detached or swapped something."""


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


def from_dict(row: Mapping[str, Any]) -> Command:
    """Return the command that a row of the journal holds."""
    known = fields(KINDS[row["command"]]) if row["command"] in KINDS else ()
    return command(row["command"], {a.name: row[a.name] for a in known if a.name in row})
