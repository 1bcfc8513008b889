"""Continue training."""

from __future__ import annotations

from attrs import frozen

from sigma_kernel.clock import TimeScale
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_training.session.planning import PlannedRun
from sigma_training.session.progress import Phase


@frozen
class Go(Command):
    """Continue training after a pause, or after a failure."""

    command = "go"
    legal = ("paused", "waiting")
    concerns = ("paused", "failed")
    undoable = False

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Train on."""
        now: PlannedRun = run.internals
        now.check_concerned(self)
        return CommandPlan(now.with_progress(now.present.progress.with_phase(Phase.RUNNING)))

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Run the hooks that are due when training continues."""
        effects.fire(TimeScale.RESUME)
