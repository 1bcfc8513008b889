"""Commands that change components, which the journal holds as plain values."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from sigma_kernel import settings
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandPlan
from sigma_kernel.errors import SigmaConfigError
from sigma_training.session.changes import Changes, Factory


def hold_component(made: Any, attribute: Any, component: Any) -> None:
    """Hold a component as the journal does: a name, or a table of plain values with its type."""
    try:
        table = {"type": component} if isinstance(component, str) else dict(component)
        plain = json.loads(json.dumps(table, allow_nan=False))
    except (TypeError, ValueError):  # reported below
        plain = {}
    if not settings.is_table(plain):
        got = repr(component) if plain or isinstance(component, Mapping) else type(component).__name__
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be a name, or a table of plain values with its 'type', "
            f"for the journal and its replay (got {got}). Write {{'type': 'name', 'setting': 1}}."
        )
    object.__setattr__(made, attribute.name, component if isinstance(component, str) else plain)


@frozen
class ComponentCommand(Command):
    """A command that changes which components a run has."""

    @abstractmethod
    def changes(self, factory: Factory, now: Changes) -> Changes:
        """Return how the components then differ from those of the settings; raise SigmaConfigError if they cannot."""

    def check(self, run: CommandedRun) -> None:
        """Check that the components can be changed so."""
        self.changes(run.internals.present.setup.factory, run.internals.changes)

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Change the components; a new optimiser starts with new slots."""
        now = run.internals
        return CommandPlan(now.with_changes(self.changes(now.present.setup.factory, now.changes)))
