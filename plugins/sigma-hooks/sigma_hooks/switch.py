"""A number that can be set live, for criteria to read."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_kernel import TimeStep
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.settings import matches_re


@define(eq=False, kw_only=True)
class Switch(Hook):
    """Provide ``switch.<name>``, a number for criteria to read, such as ``switch.brake equals 1``.

    Setting it is an ordinary command: it applies at a boundary, is recorded in the journal, and is saved with the run.

    Args:
        name: Name of the switch.
        value: Initial value.
    """

    every: TimeStep = TimeStep("start")
    name: str = field(kw_only=False, validator=matches_re(r"[\w-]++", "letters, digits, - and _"))
    value: float = 0.0

    @property
    def settable(self) -> Mapping[str, float]:
        """Return the number by its address."""
        return {f"switch.{self.name}": self.value}

    def fire(self, context: HookContext) -> None:
        """Log the address and the value when training starts."""
        context.log(f"switch.{self.name} can be set live")
