"""Train frozen parameters again."""

from __future__ import annotations

from attrs import frozen

from sigma_kernel import CommandedRun, CommandPlan, PatternCommand
from sigma_optimisers.freeze import find_flags


@frozen
class Release(PatternCommand):
    """Train frozen parameters again."""

    command = "release"

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Remove the flags of the parameters, with which the step is compiled."""
        return CommandPlan(run.with_values(dict.fromkeys(find_flags(run, self.command, self.pattern), False)))
