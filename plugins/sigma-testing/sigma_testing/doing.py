"""A configurable hook for tests: its action and its declarations are fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class Do(Hook):
    """Call a given function when fired; the declarations of a hook are fields."""

    every: TimeStep = every(1, "epoch")
    does: Callable[[HookContext], Any] = lambda context: None
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    requires: Sequence[str] = ()
    splits: Sequence[str] = ()
    settable: Mapping[str, float] = field(factory=dict)
    guards: bool = False
    ends: bool = False
    stops: bool = False

    def fire(self, context: HookContext) -> None:
        """Call the function."""
        self.does(context)
