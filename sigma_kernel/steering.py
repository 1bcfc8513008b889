"""The commands of an environment: what may be asked of it when, of whom, and how that gets there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from sigma_kernel.errors import SigmaConfigError, SigmaStateError, near
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_kernel.registry.registry import Registry
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.session.progress import LEGAL, STEERING, concerned
from sigma_kernel.training.trainer import Trainer


class Steering(ABC):
    """Commands act at the next boundary between bursts; each call returns when it has, or raises why it did not.

    ``trainer`` names the only one that is meant; without it, all are that a command concerns.
    """

    __slots__ = ()
    name: str
    catalogue: Catalogue
    trainers: dict[str, Trainer]
    registry: Registry
    _state: str
    _replaying: bool

    # -- when, and of whom --------------------------------------------------------------------------------------------
    def trainer(self, name: str) -> Trainer:
        """Return a trainer by its name."""
        if name not in self.trainers:
            raise SigmaConfigError(f"trainer {name!r}: there is none.{near(name, self.trainers)}")
        return self.trainers[name]

    def sessions(self) -> dict[str, Session]:
        """Return the session of each trainer, prepared on first use."""
        return {name: trainer.session for name, trainer in self.trainers.items()}

    @property
    def state(self) -> str:
        """Return created, prepared, running, paused (every trainer still at work has paused), stopped or failed."""
        if self._state != "running":
            return self._state
        statuses = {str(session.status) for session in self.sessions().values()}
        return "paused" if statuses & {"running", "paused"} == {"paused"} else "running"

    def _check(self, move: str) -> None:
        legal = LEGAL[self.state]
        if move not in legal and any(move in moves for moves in LEGAL.values()):
            known = f"Legal from here: {', '.join(legal)}." if legal else "Make a new environment."
            raise SigmaStateError(f"environment {self.name!r}: cannot {move} while it is {self.state}. {known}")

    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command to all trainers that it concerns, or to the one named ``trainer``; return when it acted.

        Where no trainer is named, the pattern of ``set`` starts at the root.  Raises SigmaStateError for what cannot be
        done in the present state; what is refused changes nothing.
        """
        if self._replaying:
            raise SigmaStateError(f"environment {self.name!r}: cannot {command} in a replay. Resume the run instead.")
        name = arguments.pop("trainer", None)
        by_hand = {"keep": True} if command == "save" else {}
        made = commands.command(command, {**by_hand, **arguments})
        if name is None and isinstance(made, commands.Set):
            return self._deliver(self._from_root(made))
        if name is None or command in STEERING:
            self._check(command)
        names = self._concerned(command) if name is None else [name]
        if not names and command != "stop":  # others have been faster, or training has just ended
            which = " or ".join(concerned(command) or ("there",))
            raise SigmaStateError(f"environment {self.name!r}: cannot {command}, as no trainer is {which}.")
        return self._deliver(dict.fromkeys(names, made))

    def _concerned(self, command: str) -> list[str]:
        statuses = concerned(command)
        if command == "undo":
            return self._undoing()
        return [name for name, session in self.sessions().items() if not statuses or session.status in statuses]

    def _undoing(self) -> list[str]:
        """Return who has something to undo, all if nobody has; which was last among several, nobody knows."""
        found = [name for name, session in self.sessions().items() if session.state.undo]
        if len(found) > 1:
            raise SigmaStateError(f"undo: {', '.join(found)} have something to undo. Name one: undo(trainer='...').")
        return found or list(self.trainers)

    def _deliver(self, made: Mapping[str, commands.Command]) -> dict[str, Any]:
        named = Resolver(self.catalogue).in_full
        made = {name: commands.in_full(command, named) for name, command in made.items()}
        for name, command in made.items():  # all before any is queued
            self.trainer(name).session.check(command)
        self._note_plugins()
        requests = {name: self.trainer(name).session.send(command) for name, command in made.items()}
        return {name: request.result() for name, request in requests.items()}

    def _from_root(self, made: commands.Set) -> dict[str, commands.Command]:
        """Return what a pattern that starts at the root means for each trainer."""
        found = self.registry.addresses(made.pattern)
        if not found:
            self.registry.set(made.pattern, made.value)  # says what is near
        inside = made.pattern if made.pattern.startswith("**") else made.pattern.partition(".")[2]
        return {address.partition(".")[0]: commands.Set(inside, made.value) for address in found}

    @abstractmethod
    def _note_plugins(self) -> None:
        """Write down which plugins are used, before a command brings in another."""

    # -- one by one ---------------------------------------------------------------------------------------------------
    def get(self, address: str) -> Any:
        """Return the value under an address, from the root."""
        return self.registry.get(address)

    def find(self, pattern: str) -> dict[str, Any]:
        """Return every value that matches a pattern, by its address, from the root."""
        return dict(self.registry.find(pattern))

    def set(self, pattern: str, value: Any) -> list[str]:
        """Set every value that matches a pattern, at each trainer's next boundary; return the addresses.

        Raises SigmaAddressError, and changes nothing, if nothing matches or the value does not fit.
        """
        self.send("set", pattern=pattern, value=value)
        return self.registry.addresses(pattern)

    def pause(self) -> None:
        """Pause every trainer after its present burst; returns when all are paused."""
        self.send("pause")

    def go(self) -> None:
        """Go on after a pause."""
        self.send("go")

    def step(self, count: int = 1, scale: str = "iteration") -> None:
        """Train for so many iterations or epochs, then pause again; returns when that has begun."""
        self.send("step", count=count, scale=scale)

    def stop(self) -> None:
        """End training after the present burst; returns when that is certain."""
        self.send("stop")

    def reset(self) -> None:
        """Put every trainer back to its initial state."""
        self.send("reset")

    def rewind(self, to: int, scale: str = "iteration", trainer: str | None = None) -> dict[str, Any]:
        """Go back to the newest state that is kept from a moment or earlier, and go on from it as a new branch.

        Return for each trainer, or for one, the moment that it is back at.
        """
        return self.send("rewind", to=to, scale=scale, trainer=trainer)

    def attach(self, name: str, hook: str | Mapping[str, Any], trainer: str | None = None) -> dict[str, Any]:
        """Add a hook: the name of a component, or a table ``{"type": name, setting: value}``."""
        return self.send("attach", name=name, hook=hook, trainer=trainer)

    def detach(self, name: str, trainer: str | None = None) -> dict[str, Any]:
        """Take a hook away, and forget what it remembers."""
        return self.send("detach", name=name, trainer=trainer)

    def swap(self, slot: str, component: str | Mapping[str, Any], trainer: str | None = None) -> dict[str, Any]:
        """Put another component into a slot: ``optimiser``, ``backend`` or ``iterator``."""
        return self.send("swap", slot=slot, component=component, trainer=trainer)

    def undo(self, trainer: str | None = None) -> dict[str, Any]:
        """Undo the last command that set, attached, detached or swapped something."""
        return self.send("undo", trainer=trainer)
