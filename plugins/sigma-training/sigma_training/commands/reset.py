"""Begin again."""

from __future__ import annotations

from attrs import frozen

from sigma_kernel.clock import TimeScale
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_kernel.contracts.storing import Checkpoint
from sigma_training.session.planning import PlannedRun


@frozen
class Reset(Command):
    """Go back to the initial state, at iteration 0, and continue from there."""

    command = "reset"
    undoable = False

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Restore the initial state and the configured components."""
        now: PlannedRun = run.internals
        return CommandPlan(now.with_earlier(Checkpoint(now.initial.arrays(), {}), now.recorder.branch))

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Run the hooks that are due at a reset."""
        effects.fire(TimeScale.RESET)
