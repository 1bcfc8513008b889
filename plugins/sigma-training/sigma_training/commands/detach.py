"""Remove a hook."""

from __future__ import annotations

from attrs import field, frozen

from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandPlan
from sigma_training.commands.attach import TEXT
from sigma_training.session.changes import Changes
from sigma_training.session.planning import PlannedRun


@frozen
class Detach(Command):
    """Remove a hook, its memory and its published values.

    Args:
        name: Its name in the run.
    """

    command = "detach"
    name: str = field(validator=TEXT)

    def check(self, run: CommandedRun) -> None:
        """Check the name."""
        self._changes(run.internals)

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Remove the hook from the components."""
        return CommandPlan(run.internals.with_changes(self._changes(run.internals)))

    def _changes(self, run: PlannedRun) -> Changes:
        return run.present.setup.factory.without_hook(run.changes, self.name)
