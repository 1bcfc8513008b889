"""A hook for tests that does, and declares, what it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class Do(Hook):
    """Do what it is told, with declarations as it is told."""

    every: TimeStep = every(1, "epoch")
    does: Callable[[HookContext], Any] = lambda context: None
    taking: Sequence[str] = ()
    giving: Sequence[str] = ()
    after: Sequence[str] = ()
    looking: Sequence[str] = ()
    offering: Mapping[str, float] = field(factory=dict)
    guard: bool = False
    ending: bool = False

    @property
    def reads(self) -> Sequence[str]:
        """Return the addresses to read."""
        return self.taking

    @property
    def writes(self) -> Sequence[str]:
        """Return the addresses to publish."""
        return self.giving

    @property
    def requires(self) -> Sequence[str]:
        """Return the hooks to wait for."""
        return self.after

    @property
    def splits(self) -> Sequence[str]:
        """Return the splits to measure on."""
        return self.looking

    @property
    def settable(self) -> Mapping[str, float]:
        """Return the numbers to offer."""
        return self.offering

    @property
    def guards(self) -> bool:
        """Return whether it guards."""
        return self.guard

    @property
    def ends(self) -> bool:
        """Return whether it ends training."""
        return self.ending

    def fire(self, context: HookContext) -> None:
        """Do it."""
        self.does(context)
