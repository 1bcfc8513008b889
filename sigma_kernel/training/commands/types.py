"""The types of commands: changes from outside, applied by the training thread at a boundary between bursts.

A malformed command is refused before it is queued.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from numbers import Integral
from typing import Any

from attrs import asdict, evolve, field, fields, frozen

from sigma_kernel import settings
from sigma_kernel.arrays import as_numpy
from sigma_kernel.clock import TimeScale
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, near

SLOTS = ("optimiser", "backend", "iterator")  # what ``swap`` replaces, and any of several ``optimisers.<name>``
SCALE = settings.in_((TimeScale.ITERATION.value, TimeScale.EPOCH.value))
TEXT = settings.instance_of(str, "a string")
NUMBER = settings.must(lambda x: isinstance(x, int | float) and not isinstance(x, bool), "a number")  # or infinite, NaN


@frozen
class Command:
    """A change; its fields are plain JSON values."""

    def to_dict(self) -> dict[str, Any]:
        """Return the command as its journal row holds it."""
        return {"command": NAMES[type(self)], **asdict(self)}


def _written(made: Command, attribute: Any, component: Any) -> None:
    """Hold a component as the journal does: a name, or a table of plain values with its type."""
    try:
        table = {"type": component} if isinstance(component, str) else dict(component)
        plain = json.loads(json.dumps(table, allow_nan=False))
    except (TypeError, ValueError):  # reported below
        plain = {}
    if not settings.is_table(plain):
        got = repr(component) if plain or isinstance(component, Mapping) else type(component).__name__
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be a name, or a table of plain values with its 'type', "
            f"for the journal and its replay (got {got}). Write {{'type': 'name', 'setting': 1}}."
        )
    object.__setattr__(made, attribute.name, component if isinstance(component, str) else plain)


def _rows(made: Command, attribute: Any, rows: Any) -> None:
    """Hold the numbers of rows as the journal does, in order and each once."""
    plain = rows.tolist() if hasattr(rows, "tolist") else rows
    listed = [plain] if isinstance(plain, Integral) else plain
    listed = [*listed] if isinstance(listed, Iterable) and not isinstance(listed, str | Mapping) else []
    if not listed or not all(settings.is_whole(row, 0) for row in listed):
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be the number of a row, or several, counted from 0 (got "
            f"{rows!r:.80})."
        )
    object.__setattr__(made, attribute.name, sorted({int(row) for row in listed}))


def _label(made: Command, attribute: Any, label: Any) -> None:
    """Hold a label as the journal does."""
    try:
        plain = json.loads(json.dumps(label, allow_nan=False, default=lambda value: value.tolist()))
    except (AttributeError, TypeError, ValueError):  # AttributeError: neither plain nor an array
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be a word, finite numbers, or a table of these by section "
            f"(got {label!r:.80})."
        ) from None
    object.__setattr__(made, attribute.name, plain)


def _slot(made: Command, attribute: Any, slot: Any) -> None:
    """Refuse anything but a slot."""
    if not (isinstance(slot, str) and slot.startswith("optimisers.")):
        settings.in_(SLOTS)(made, attribute, slot)


def _plain(value: Any) -> Any:
    """Return an array of another library as the journal holds it; one that cannot be read is left to be refused."""
    with suppress(TypeError, RuntimeError, BufferError):
        if hasattr(value, "__dlpack__"):
            found = as_numpy(value)
            return found if found.ndim else found.item()
    return value


@frozen
class Set(Command):
    """Set every value that an address pattern matches; addresses start at the trainer."""

    pattern: str
    value: Any = field(converter=_plain)


@frozen
class Pause(Command):
    """Pause after the current burst."""


@frozen
class Go(Command):
    """Continue after a pause."""


@frozen
class StepBy(Command):
    """Continue for ``count`` ticks of a time scale, then pause again."""

    count: int = field(default=1, validator=[settings.whole, settings.ge(1)])
    scale: str = field(default="iteration", validator=SCALE)


@frozen
class StopTraining(Command):
    """End training after the current burst; ``cause`` says why, unless a person asked for it."""

    cause: str = ""


@frozen
class Save(Command):
    """Write a checkpoint; ``score`` ranks it for retention of the best, ``keep`` exempts it from removal."""

    cause: str = ""
    score: float | None = field(default=None, validator=settings.optional(NUMBER))
    keep: bool = False


@frozen
class Rewind(Command):
    """Rewind to the newest snapshot in memory at or before a moment, and continue on a new branch."""

    to: int = field(validator=[settings.whole, settings.ge(0)])
    scale: str = field(default="iteration", validator=SCALE)


@frozen
class Reset(Command):
    """Go back to the initial state, at iteration 0, and continue from there."""


@frozen
class Attach(Command):
    """Add a hook: the name of a component, or a table ``{"type": name, setting: value}``."""

    name: str = field(validator=TEXT)
    hook: Any = field(validator=_written)


@frozen
class Detach(Command):
    """Remove a hook and its memory."""

    name: str = field(validator=TEXT)


@frozen
class Swap(Command):
    """Replace the component in a slot: ``optimiser`` or ``optimisers.<name>``, ``backend``, ``iterator``."""

    slot: str = field(validator=_slot)
    component: Any = field(validator=_written)


@frozen
class Edit(Command):
    """A change of the rows of a split, from the next epoch on; they are numbered before they are shuffled."""

    rows: Any = field(validator=_rows)
    split: str = field(default="training", validator=TEXT, kw_only=True)


@frozen
class Exclude(Edit):
    """Leave rows out."""


@frozen
class Include(Edit):
    """Take rows back that were left out."""


@frozen
class Relabel(Edit):
    """Give rows another label, or with None that of the data again: a raw one; of several sections, by section."""

    label: Any = field(validator=_label)


@frozen
class Undo(Command):
    """Undo the last command from outside that changed values, components or rows."""


def kind(slot: str) -> str:
    """Return the kind of the components in a slot."""
    return "optimiser" if slot.startswith("optimisers.") else slot


def in_full(made: Command, name: Callable[[str, Any], Any]) -> Command:
    """Return a command with the full names of components, for the journal."""
    match made:
        case Attach(_, hook):
            return evolve(made, hook=name("hook", hook))
        case Swap(slot, component):
            return evolve(made, component=name(kind(slot), component))
    return made


KINDS: dict[str, type[Command]] = {
    "set": Set, "pause": Pause, "go": Go, "step": StepBy, "stop": StopTraining, "save": Save, "rewind": Rewind,
    "reset": Reset, "attach": Attach, "detach": Detach, "swap": Swap, "undo": Undo,
    "exclude": Exclude, "include": Include, "relabel": Relabel,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}


def command(name: str, arguments: Mapping[str, Any]) -> Command:
    """Make the command of a name; raise SigmaStateError if it is unknown, or its arguments do not fit."""
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
    except SigmaConfigError as error:  # drops the class name before the argument's
        raise SigmaStateError(f"command {name!r}: {str(error).partition('.')[2]}") from None


def from_dict(row: Mapping[str, Any]) -> Command:
    """Return the command of a journal row."""
    known = fields(KINDS[row["command"]]) if row["command"] in KINDS else ()
    return command(row["command"], {a.name: row[a.name] for a in known if a.name in row})
