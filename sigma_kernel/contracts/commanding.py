"""Contracts of commanding: live changes of a run, which are checked, journalled, replayed and undone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self

from attrs import asdict, evolve, field, fields, frozen

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, suggest_name
from sigma_kernel.graph.reprs import brief
from sigma_kernel.registry.registry import Registry
from sigma_kernel.settings import instance_of


class CommandedRun(Protocol):
    """A trainer's run at one moment, as a command sees it. It is a value: methods return another one."""

    @property
    def name(self) -> str:
        """Return the name of the trainer."""

    @property
    def moment(self) -> Moment:
        """Return the present moment."""

    @property
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""

    @property
    def internals(self) -> Any:
        """Return the run as the trainer that is installed holds it; other plugins cannot rely on its form."""

    def addresses(self, pattern: str = "**") -> list[str]:
        """Return the addresses that match a pattern; they start at the trainer."""

    def get(self, address: str) -> Any:
        """Return the value at an address as it was before the command; an array is a copy on the host."""

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the run with new values at addresses; raises a SigmaError if one does not fit, or cannot be set."""

    def with_command(self, command: str, **arguments: Any) -> Self:
        """Return the run after another command that changes values, components or rows."""


class SaveOrder(Protocol):
    """A command to save."""

    @property
    def score(self) -> float | None:
        """Return its rank for retention of the best."""

    @property
    def keep(self) -> bool:
        """Return whether the checkpoint is exempt from removal."""

    @property
    def name(self) -> str:
        """Return the name of the state; empty if it has none."""

    @property
    def note(self) -> str:
        """Return what a person noted about the state."""

    def to_row(self) -> dict[str, Any]:
        """Return its row in the journal."""


class CommandEffects(Protocol):
    """The side effects that a command may have once it is journalled."""

    def fire(self, scale: TimeScale) -> None:
        """Run the hooks that are due at an event."""

    def save(self, command: SaveOrder, by: str | None = None, at: int | None = None) -> None:
        """Write a checkpoint on behalf of a hook, by default the present one, as of a place in the journal."""


class CommandTarget(Protocol):
    """A prepared trainer that a command may concern."""

    @property
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""

    @property
    def can_undo(self) -> bool:
        """Return whether a command can be undone."""


@frozen(eq=False, repr=False)
class CommandPlan:
    """The planned changes of a command.

    Args:
        run: The new value of the run.
        row: What its row in the journal holds besides its fields, or in their place; None if no row is written.
    """

    run: CommandedRun
    row: Mapping[str, Any] | None = field(factory=dict)

    __repr__ = brief


@frozen
class Command(ABC):
    """A live change of a run (component kind ``command``), as an attrs class decorated with ``frozen``.

    Its fields are plain JSON values, documented below ``Args:``; the first line of its docstring is what people read in
    help and lists. The sender constructs and checks a command; it is applied between two bursts, written to the
    journal, and replayed from there. An exception of :meth:`check` or :meth:`plan` refuses it without any change.
    """

    command: ClassVar[str]  # its name in the journal: that of the component, of third parties ``distribution:name``
    legal: ClassVar[tuple[str, ...]] = ()  # states of an environment; ``waiting`` is after a failure. Empty: all
    concerns: ClassVar[tuple[str, ...]] = ()  # statuses of trainers; empty: all
    prepares: ClassVar[bool] = True  # trainers that are not prepared; else it is applied to none of them
    undoable: ClassVar[bool] = True  # ``undo`` restores what it changed: values, components, rows
    by_hand: ClassVar[Mapping[str, Any]] = {}  # values of fields that only hooks, and Python, choose

    @abstractmethod
    def plan(self, run: CommandedRun) -> CommandPlan:
        """Return what becomes of the run, which stays as it is; raise a SigmaError if the command does not fit it."""

    def check(self, run: CommandedRun) -> None:
        """Raise a SigmaError for mistakes detectable in the sender's thread; arrays must not be read."""
        return

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Act once the plan is in force; ``at`` is the place of the row in the journal, ``before`` the former run."""
        return

    def in_full(self, name: Callable[[str, Any], Any]) -> Self:
        """Return the command with the full names of components; ``name`` takes a kind and a name or a table."""
        return self

    def for_trainers(self, root: Registry, trainers: Mapping[str, CommandTarget]) -> Mapping[str, Command]:
        """Return the command of each trainer, for one that was sent without a name; its addresses start at ``root``."""
        return {name: self for name, target in trainers.items() if not self.concerns or target.status in self.concerns}

    def to_row(self) -> dict[str, Any]:
        """Return the command as its row in the journal holds it."""
        return {"command": self.command, **asdict(self)}


@frozen
class PatternCommand(Command):
    """A command for all values that a pattern matches; people may name a value by its last levels.

    Args:
        pattern: An address, or a pattern of addresses; of a trainer that is named, they start there.
    """

    pattern: str = field(validator=instance_of(str, "a string"))

    def for_trainers(self, root: Registry, trainers: Mapping[str, CommandTarget]) -> Mapping[str, Command]:
        """Return the command of each trainer that has matches; raise SigmaAddressError if nothing matches."""
        if not (addresses := root.addresses(self.pattern)):
            raise root.unmatched_error(self.pattern)
        inside = self.pattern if self.pattern.startswith("**") else self.pattern.partition(".")[2]
        named = (address.partition(".")[0] for address in addresses)
        return {name: evolve(self, pattern=inside) for name in named if name in trainers}


Find = Callable[[str, Any], Any]  # the class of a command, by the kind ``command`` and its name


def make_command(find: Find, name: str, arguments: Mapping[str, Any], by_hand: bool = False) -> Command:
    """Make the command of a name; ``by_hand`` marks it as sent by a person.

    Raises SigmaConfigError if no plugin offers it, SigmaStateError if its arguments do not fit.
    """
    cls: type[Command] = find("command", name)
    names = [a.name for a in fields(cls)]
    for argument in arguments:
        if argument not in names:
            raise SigmaStateError(f"command {name!r}: has no {argument!r}.{suggest_name(argument, names)}")
    try:
        return cls(**{**(cls.by_hand if by_hand else {}), **arguments})
    except TypeError:
        raise SigmaStateError(f"command {name!r}: needs {', '.join(names)}.") from None
    except SigmaConfigError as error:  # drops the class name before the argument's
        raise SigmaStateError(f"command {name!r}: {str(error).partition('.')[2]}") from None
