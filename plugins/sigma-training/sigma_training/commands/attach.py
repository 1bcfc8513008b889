"""Add a hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve, field, frozen

from sigma_kernel import settings
from sigma_training.commands.components import ComponentCommand, hold_component
from sigma_training.session.changes import Changes, Factory

TEXT = settings.instance_of(str, "a string")


@frozen
class Attach(ComponentCommand):
    """Add a hook.

    Args:
        name: Its name in the run.
        hook: The name of a component, or a table ``{"type": name, setting: value}``.
    """

    command = "attach"
    name: str = field(validator=TEXT)
    hook: str | dict[str, Any] = field(validator=hold_component)

    def changes(self, factory: Factory, now: Changes) -> Changes:
        """Add the hook to the components."""
        return factory.with_hook(now, self.name, self.hook)

    def in_full(self, name: Callable[[str, Any], Any]) -> Attach:
        """Return the command with the full name of the component."""
        return evolve(self, hook=name("hook", self.hook))
