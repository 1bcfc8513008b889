"""A configurable hook for tests: its action and its declarations are fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class Do(Hook):
    """Call a given function when fired, with given declarations."""

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
        """Return ``taking``."""
        return self.taking

    @property
    def writes(self) -> Sequence[str]:
        """Return ``giving``."""
        return self.giving

    @property
    def requires(self) -> Sequence[str]:
        """Return ``after``."""
        return self.after

    @property
    def splits(self) -> Sequence[str]:
        """Return ``looking``."""
        return self.looking

    @property
    def settable(self) -> Mapping[str, float]:
        """Return ``offering``."""
        return self.offering

    @property
    def guards(self) -> bool:
        """Return ``guard``."""
        return self.guard

    @property
    def ends(self) -> bool:
        """Return ``ending``."""
        return self.ending

    def fire(self, context: HookContext) -> None:
        """Call the function."""
        self.does(context)
