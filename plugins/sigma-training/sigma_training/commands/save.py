"""Write a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import field, frozen

from sigma_kernel import settings
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_kernel.errors import SigmaStateError

NUMBER = settings.must(lambda x: isinstance(x, int | float) and not isinstance(x, bool), "a number")  # or infinite, NaN


@frozen
class Save(Command):
    """Write a checkpoint; one that a person asks for is never removed by hooks.

    Args:
        cause: Why, unless a person asked for it.
        score: Its rank for retention of the best.
        keep: Whether it is exempt from removal.
    """

    command = "save"
    undoable = False
    by_hand: ClassVar[Mapping[str, Any]] = {"cause": "", "score": None, "keep": True}
    cause: str = ""
    score: float | None = field(default=None, validator=settings.optional(NUMBER))
    keep: bool = False

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Leave the run as it is; the row is written with the checkpoint."""
        if not run.internals.checkpoints.can_save:
            raise SigmaStateError("save: this environment has no folder. Give it one: Environment(..., folder='runs').")
        return CommandPlan(run, row=None)

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Write the checkpoint."""
        effects.save(self)
