"""Go back to an earlier state."""

from __future__ import annotations

from attrs import field, frozen

from sigma_kernel import settings
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_training.commands.save import Save
from sigma_training.commands.step import SCALE
from sigma_training.session.keeping import leave_kept
from sigma_training.session.planning import PlannedRun
from sigma_training.session.progress import TrainingProgress

STATE_OR_NUMBER = settings.must(
    lambda to: settings.is_whole(to, 0) or (isinstance(to, str) and to),
    "a whole number from 0 on, or the name of a state",
)


@frozen
class Rewind(Command):
    """Go back to the newest state at or before a moment, and continue from there on a new branch.

    Args:
        to: The number of an iteration or epoch, or the name of a state.
        scale: The time scale, ``iteration`` or ``epoch``.
    """

    command = "rewind"
    undoable = False
    to: int | str = field(validator=STATE_OR_NUMBER)
    scale: str = field(default="iteration", validator=SCALE)

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Restore a snapshot in memory, or else a checkpoint."""
        now: PlannedRun = run.internals
        branch, progress = now.recorder.branch, now.present.progress
        if isinstance(self.to, str):
            entry = now.newest_before(now.checkpoints.find_named(self.to), "iteration")
        else:
            entry = now.newest_before(self.to, self.scale)
        moment, saved = entry
        new = now.with_earlier(saved, branch + 1, entry, progress if progress.underway else TrainingProgress())
        row = {**Rewind(moment.iteration).to_row(), "branch": branch + 1, "parent": branch, "to_seconds": moment.second}
        return CommandPlan(new.with_present(leave_kept(new.present)), row)

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Save the state, so that a resume finds it on the new branch."""
        if before.internals.checkpoints.can_save:
            effects.save(Save(), "rewind")
