"""End training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import evolve, frozen

from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_training.commands.save import Save
from sigma_training.history.replay import STOP
from sigma_training.session.planning import PlannedRun
from sigma_training.session.progress import Phase


@frozen
class StopTraining(Command):
    """End training after the current burst; the run is saved first, so that it can be resumed.

    Args:
        cause: Why, unless a person asked for it. That of a hook is ``STATUS: REASON``: both are in the summary.
    """

    command = "stop"
    concerns = ("running", "paused", "failed")
    prepares = False
    undoable = False
    by_hand: ClassVar[Mapping[str, Any]] = {"cause": ""}
    cause: str = ""

    def plan(self, run: CommandedRun) -> CommandPlan:
        """End training at this boundary; stopped from outside, it is interrupted, and a resume continues it."""
        now: PlannedRun = run.internals
        progress, interrupted = now.present.progress, evolve(now.present.progress, interrupted=True)
        if progress.is_over or not now.busy:  # once it has failed, nobody waits for a command to go on any more
            return CommandPlan(now.with_progress(interrupted) if now.status == Phase.FAILED else now, row=None)
        return CommandPlan(now.with_progress(progress.ending(self.cause) if now.sender else interrupted))

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Save a run that was interrupted."""
        now: PlannedRun = before.internals
        ends = now.busy and not now.present.progress.is_over and not now.sender
        if ends and now.checkpoints.can_save:
            effects.save(Save(self.cause), STOP, at)
