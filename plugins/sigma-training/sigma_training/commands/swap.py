"""Replace a component."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve, field, frozen

from sigma_kernel import settings
from sigma_training.commands.components import ComponentCommand, hold_component
from sigma_training.session.changes import Changes, Factory

SLOTS = ("optimiser", "backend", "iterator")  # and any of several ``optimisers.<name>``


def _slot(made: Any, attribute: Any, slot: Any) -> None:
    """Refuse anything but a slot."""
    if not (isinstance(slot, str) and slot.startswith("optimisers.")):
        settings.in_(SLOTS)(made, attribute, slot)


@frozen
class Swap(ComponentCommand):
    """Replace the optimiser, the backend or the iterator.

    Args:
        slot: What it replaces: ``optimiser``, of several ``optimisers.NAME``; ``backend`` or ``iterator``.
        component: The name of a component, or a table ``{"type": name, setting: value}``.
    """

    command = "swap"
    slot: str = field(validator=_slot)
    component: str | dict[str, Any] = field(validator=hold_component)

    def changes(self, factory: Factory, now: Changes) -> Changes:
        """Replace the component in the slot."""
        return factory.with_part(now, self.slot, self.component)

    def in_full(self, name: Callable[[str, Any], Any]) -> Swap:
        """Return the command with the full name of the component."""
        kind = "optimiser" if self.slot.startswith("optimisers.") else self.slot
        return evolve(self, component=name(kind, self.component))
