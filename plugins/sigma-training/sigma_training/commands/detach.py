"""Remove a hook."""

from __future__ import annotations

from attrs import field, frozen

from sigma_training.commands.attach import TEXT
from sigma_training.commands.components import ComponentCommand
from sigma_training.session.changes import Changes, Factory


@frozen
class Detach(ComponentCommand):
    """Remove a hook, its memory and its published values.

    Args:
        name: Its name in the run.
    """

    command = "detach"
    name: str = field(validator=TEXT)

    def changes(self, factory: Factory, now: Changes) -> Changes:
        """Remove the hook from the components."""
        return factory.without_hook(now, self.name)
