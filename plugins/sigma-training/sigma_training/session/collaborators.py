"""What the parts of a session ask of each other: each knows these few methods, and none imports another part."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.contracts.commanding import Command, SaveOrder
from sigma_kernel.contracts.storing import Checkpoint
from sigma_training.history.replay import Replay, Row
from sigma_training.session.progress import TrainingProgress

Saves = list[tuple[str, SaveOrder]]  # wanted at one boundary, each with the hook that wants it


class Setter(Protocol):
    """Who sets the value at an address at the next boundary."""

    def set(self, address: str, value: Any) -> None:
        """Set the value at an address."""


class CommandSink(Protocol):
    """Who makes commands, and applies them in the training thread."""

    def find(self, kind: str, name: str) -> Any:
        """Return the class of a command."""

    def make(self, command: str, **arguments: Any) -> Command:
        """Make a command."""

    def apply(self, command: Command) -> Moment:
        """Apply a command now, and write it to the journal; one that raises changes nothing."""


class Commander(CommandSink, Protocol):
    """Who applies commands, and pauses training at a goal."""

    def pause(self) -> None:
        """Pause: the training thread waits at the next boundary."""


class SavePoint(Protocol):
    """Who saves checkpoints."""

    @property
    def can_save(self) -> bool:
        """Return whether checkpoints can be saved, or a replay behaves as if they were."""

    def save_together(self) -> AbstractContextManager[Saves]:
        """Save once, after all hooks inside, if any of them asked."""

    def ask(self, command: SaveOrder) -> None:
        """Save now, or once after all hooks that are due together."""

    def write_checkpoint(self, wanted: Saves, place: int | None = None) -> None:
        """Write one checkpoint, with its position in the journal, by default the current one."""

    def newest_saved(self, to: int, scale: str) -> list[tuple[Moment, Checkpoint]]:
        """Return the newest intact checkpoint of this branch at or before a moment, if any."""

    def set_aside(self, after: int, branch: int) -> None:
        """Set the checkpoints after an iteration aside, on an abandoned branch."""

    def flush(self) -> None:
        """Wait until all checkpoints are written."""

    def save_good(self, found: Checkpoint | None) -> int | None:
        """Save the newest good state; return its iteration, or None."""


class HookDriver(Protocol):
    """Who runs the hooks of a session."""

    def split(self, workers: int) -> None:
        """Set the number of workers, for each of which hooks of local scope run once."""

    def tick(self, scale: TimeScale, commands: CommandSink) -> None:
        """Run the hooks that are due at an event."""

    def run_due(self, commands: CommandSink) -> Moment:
        """Run the hooks that are due since the last time; return the moment of that."""

    def settle_at(self, moment: Moment) -> None:
        """Take all hooks up to a moment for done."""

    def catch_up(self, commands: CommandSink) -> None:
        """Apply results of background hooks, and the consequences of exceeded budgets."""

    def apply_result(self, row: Row, commands: CommandSink) -> None:
        """Apply a background result, or an exceeded budget."""

    def forget_budgets(self) -> None:
        """Forget what exceeded budgets are waiting, as their consequences are in the journal."""

    def finish(self, commands: CommandSink) -> None:
        """Wait for background hooks and apply their results, unless training was interrupted."""


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
