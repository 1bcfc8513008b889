"""What parts of a session ask of those that are built after them, by a few methods in place of an import."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.commanding import Command, SaveOrder
from sigma_kernel.contracts.storing import Checkpoint
from sigma_training.history.replay import Replay
from sigma_training.session.progress import TrainingProgress

Saves = list[tuple[str, SaveOrder]]  # wanted at one boundary, each with the hook that wants it


class Commander(Protocol):
    """Who makes commands, and applies them in the training thread."""

    def set(self, address: str, value: Any) -> None:
        """Set the value at an address at the next boundary."""

    def find(self, kind: str, name: str) -> Any:
        """Return the class of a command."""

    def make(self, command: str, **arguments: Any) -> Command:
        """Make a command."""

    def apply(self, command: Command) -> Moment:
        """Apply a command now, and write it to the journal; one that raises changes nothing."""

    def pause(self) -> None:
        """Pause: the training thread waits at the next boundary."""


class SavePoint(Protocol):
    """Who saves checkpoints."""

    @property
    def can_save(self) -> bool:
        """Return whether checkpoints can be saved, or a replay behaves as if they were."""

    def save_together(self) -> AbstractContextManager[Saves]:
        """Save once, after all hooks inside, if any of them asked."""

    def newest_saved(self, to: int, scale: str) -> list[tuple[Moment, Checkpoint]]:
        """Return the newest intact checkpoint of this branch at or before a moment, if any."""


class Replaying(Protocol):
    """Who replays a journal, and continues training where that ends."""

    def remember_goals(self, progress: TrainingProgress) -> None:
        """Remember the goals to which training goes on if the replay is left early."""

    def replay_rows(self, replay: Replay) -> None:
        """Replay the rows of this moment."""

    def train_on(self) -> None:
        """Continue a run that was interrupted while paused or stepping."""

    def leave_early(self, replay: Replay) -> None:
        """Stop during replay if requested, or at a goal."""
