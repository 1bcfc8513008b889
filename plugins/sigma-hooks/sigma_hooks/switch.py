"""A number that people flip while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_kernel.clock import TimeStep
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.settings import matches_re


@define(eq=False, kw_only=True)
class Switch(Hook):
    """Offer ``switch.<name>``, a number that means what criteria make of it, such as ``switch.brake equals 1``.

    It begins as ``value``.  Setting it is a command like any other: it acts at a boundary, stands in the journal, and
    is saved with the run.
    """

    every: TimeStep = TimeStep("start")
    name: str = field(kw_only=False, validator=matches_re(r"[\w-]++", "letters, digits, - and _"))
    value: float = 0.0

    @property
    def settable(self) -> Mapping[str, float]:
        """Return the one number."""
        return {f"switch.{self.name}": self.value}

    def fire(self, context: HookContext) -> None:
        """Say where it is, at the start."""
        context.log(f"switch.{self.name} can be set while this runs")
