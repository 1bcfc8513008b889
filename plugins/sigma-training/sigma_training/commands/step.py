"""Continue training for some iterations or epochs."""

from __future__ import annotations

from attrs import evolve, field, frozen

from sigma_kernel import settings
from sigma_kernel.clock import TimeScale
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_training.session.goals import goal_after
from sigma_training.session.planning import PlannedRun
from sigma_training.session.progress import Phase

SCALE = settings.in_((TimeScale.ITERATION.value, TimeScale.EPOCH.value))


@frozen
class StepBy(Command):
    """Train for some iterations or epochs, then pause again.

    Args:
        count: How many.
        scale: The time scale, ``iteration`` or ``epoch``.
    """

    command = "step"
    legal = ("paused", "waiting")
    concerns = ("paused", "failed")
    undoable = False
    count: int = field(default=1, validator=[settings.whole, settings.ge(1)])
    scale: str = field(default="iteration", validator=SCALE)

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Train on, to a goal."""
        now: PlannedRun = run.internals
        now.check_concerned(self)
        goal = goal_after(now.present, **{f"{self.scale}s": self.count})
        return CommandPlan(now.with_progress(evolve(now.present.progress, pause=goal).with_phase(Phase.RUNNING)))

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Run the hooks that are due when training continues."""
        effects.fire(TimeScale.RESUME)
