"""Measure wall-clock time between firings."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class RunningTime(Hook):
    """Publish ``running_time``, the seconds of training since the last firing."""

    every: TimeStep = every(1, "epoch")

    timed = True

    @property
    def writes(self) -> Sequence[str]:
        """Return the one address."""
        return ["running_time"]

    def fire(self, context: HookContext) -> None:
        """Publish the difference."""
        now = context.moment.second
        context.publish("running_time", now - context.memory.get("last", 0.0))
        context.memory["last"] = now
