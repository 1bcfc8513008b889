"""Log the progress of training."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class Progress(Hook):
    """Log epoch and iteration; publish ``progress``, the fraction completed, if the last iteration is known."""

    every: TimeStep = every(1, "epoch")

    @property
    def reads(self) -> Sequence[str]:
        """Return the last iteration, if it is known."""
        return ["goal"]

    @property
    def writes(self) -> Sequence[str]:
        """Return the one address."""
        return ["progress"]

    def fire(self, context: HookContext) -> None:
        """Publish the fraction, and log epoch and iteration."""
        now, goal = context.moment, context.read("goal")
        text = f"epoch {now.epoch}, iteration {now.iteration}"
        if goal:
            context.publish("progress", min(1.0, now.iteration / goal))
            text += f" of {goal} ({min(1.0, now.iteration / goal):.0%})"
        context.log(text)
