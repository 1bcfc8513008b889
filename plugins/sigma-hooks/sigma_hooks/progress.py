"""Tell how far training has come."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class Progress(Hook):
    """Tell the epoch and the iteration; where the end is known, publish ``progress``, the share that is done."""

    every: TimeStep = every(1, "epoch")

    @property
    def reads(self) -> Sequence[str]:
        """Return the iteration at which training ends at the latest."""
        return ["goal"]

    @property
    def writes(self) -> Sequence[str]:
        """Return the one address."""
        return ["progress"]

    def fire(self, context: HookContext) -> None:
        """Publish and tell."""
        now, goal = context.moment, context.read("goal")
        text = f"epoch {now.epoch}, iteration {now.iteration}"
        if goal:
            context.publish("progress", min(1.0, now.iteration / goal))
            text += f" of {goal} ({min(1.0, now.iteration / goal):.0%})"
        context.log(text)
