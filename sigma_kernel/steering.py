"""The methods by which people steer: one for each command of training, with its fields as arguments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any


class SteeringMethods:
    """The receivers of commands: all trainers that a command concerns, or the named ``trainer``.

    Commands act at the next boundary between bursts; each call returns when it has, or raises why it did not.
    """

    __slots__ = ()

    @abstractmethod
    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command; return when each trainer has applied it."""

    def pause(self) -> None:
        """Pause every trainer after its current burst; return when all are paused."""
        self.send("pause")

    def go(self) -> None:
        """Continue after a pause."""
        self.send("go")

    def step(self, count: int = 1, scale: str = "iteration") -> None:
        """Train for ``count`` iterations or epochs, then pause again; return when that has begun."""
        self.send("step", count=count, scale=scale)

    def stop(self) -> None:
        """End training after the current burst; return once the command was applied."""
        self.send("stop")

    def reset(self) -> None:
        """Reset every trainer to its initial state."""
        self.send("reset")

    def save(self, name: str = "", note: str = "", trainer: str | None = None) -> dict[str, Any]:
        """Write a checkpoint that hooks never remove, and name the state; return when each trainer has."""
        return self.send("save", name=name, note=note, trainer=trainer)

    def rewind(self, to: int | str, scale: str = "iteration", trainer: str | None = None) -> dict[str, Any]:
        """Rewind to the newest snapshot at or before a moment, or to a named state, and continue on a new branch.

        Return the moment of that snapshot, for each trainer.
        """
        return self.send("rewind", to=to, scale=scale, trainer=trainer)

    def attach(self, name: str, hook: str | Mapping[str, Any], trainer: str | None = None) -> dict[str, Any]:
        """Add a hook: the name of a component, or a table ``{"type": name, setting: value}``."""
        return self.send("attach", name=name, hook=hook, trainer=trainer)

    def detach(self, name: str, trainer: str | None = None) -> dict[str, Any]:
        """Remove a hook and its memory."""
        return self.send("detach", name=name, trainer=trainer)

    def swap(self, slot: str, component: str | Mapping[str, Any], trainer: str | None = None) -> dict[str, Any]:
        """Replace the component in a slot: ``optimiser``, ``backend`` or ``iterator``."""
        return self.send("swap", slot=slot, component=component, trainer=trainer)

    def exclude(self, rows: int | Iterable[int], split: str = "training", trainer: str | None = None) -> dict[str, Any]:
        """Exclude rows of a split from the next epoch on; they are numbered from 0, before shuffling.

        The data themselves are not changed.  Raises a SigmaError for rows that do not exist, and if too few are left.
        """
        return self.send("exclude", rows=rows, split=split, trainer=trainer)

    def include(self, rows: int | Iterable[int], split: str = "training", trainer: str | None = None) -> dict[str, Any]:
        """Take rows of a split back that were left out, from the next epoch on."""
        return self.send("include", rows=rows, split=split, trainer=trainer)

    def relabel(
        self, rows: int | Iterable[int], label: Any, split: str = "training", trainer: str | None = None
    ) -> dict[str, Any]:
        """Give rows of a split another label from the next epoch on, or with None the data's again.

        A label is raw: a class, or a value like those in the data; with several sections of targets, a dictionary by
        section.  Preprocessors are applied to it, and not fitted again.
        """
        return self.send("relabel", rows=rows, label=label, split=split, trainer=trainer)

    def undo(self, trainer: str | None = None) -> dict[str, Any]:
        """Undo the last command that changed values, components or rows."""
        return self.send("undo", trainer=trainer)
