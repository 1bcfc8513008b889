"""Pause training."""

from __future__ import annotations

from attrs import frozen

from sigma_kernel.clock import TimeScale
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_training.session.planning import PlannedRun
from sigma_training.session.progress import Phase


@frozen
class Pause(Command):
    """Pause training after the current burst."""

    command = "pause"
    legal = concerns = ("running",)
    undoable = False

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Wait at the next boundary."""
        now: PlannedRun = run.internals
        now.check_concerned(self)
        return CommandPlan(now.with_progress(now.present.progress.with_phase(Phase.PAUSED)))

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Run the hooks that are due at a pause."""
        effects.fire(TimeScale.PAUSE)
