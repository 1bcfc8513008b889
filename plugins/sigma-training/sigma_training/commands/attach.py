"""Add a hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve, field, frozen

from sigma_kernel import settings
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandPlan
from sigma_training.commands.components import hold_component
from sigma_training.session.changes import Changes
from sigma_training.session.planning import PlannedRun

TEXT = settings.instance_of(str, "a string")


@frozen
class Attach(Command):
    """Add a hook.

    Args:
        name: Its name in the run.
        hook: The name of a component, or a table ``{"type": name, setting: value}``.
    """

    command = "attach"
    name: str = field(validator=TEXT)
    hook: str | dict[str, Any] = field(validator=hold_component)

    def check(self, run: CommandedRun) -> None:
        """Check the name and the component."""
        self._changes(run.internals)

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Add the hook to the components."""
        return CommandPlan(run.internals.with_changes(self._changes(run.internals)))

    def _changes(self, run: PlannedRun) -> Changes:
        return run.present.setup.factory.with_hook(run.changes, self.name, self.hook)

    def in_full(self, name: Callable[[str, Any], Any]) -> Attach:
        """Return the command with the full name of the component."""
        return evolve(self, hook=name("hook", self.hook))
