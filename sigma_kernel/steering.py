"""The commands of an environment, as methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any


class Steering(ABC):
    """Commands act at the next boundary between bursts; each call returns when it has, or raises why it did not.

    ``trainer`` names the only one that is meant; without it, all are that a command concerns.
    """

    __slots__ = ()

    @abstractmethod
    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command; return the moment at which it acted, for each trainer."""

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
        """Put another component into a slot: ``optimiser``, ``backend`` or ``order``."""
        return self.send("swap", slot=slot, component=component, trainer=trainer)

    def undo(self, trainer: str | None = None) -> dict[str, Any]:
        """Undo the last command that set, attached, detached or swapped something."""
        return self.send("undo", trainer=trainer)
