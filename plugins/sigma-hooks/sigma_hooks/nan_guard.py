"""Fail, stop, restore earlier parameters or train on when the loss is NaN or infinite."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.settings import in_


@define(eq=False, kw_only=True)
class NanGuard(Hook):
    """Act as soon as the loss is NaN or infinite.

    Args:
        then: What to do: ``fail`` raises SigmaTrainingError, as happens without this hook, ``stop`` stops training,
            ``restore`` restores the parameters of the last firing with a finite loss, and stops, ``continue`` trains
            on, for steps that leave out updates whose gradients are not finite.
    """

    every: TimeStep = every(1, "epoch")
    then: str = field(default="fail", validator=in_(("fail", "stop", "restore", "continue")))
    priority: int = 100  # before hooks that would publish invalid values

    guards = True

    @property
    def reads(self) -> Sequence[str]:
        """Return the loss."""
        return ["training.loss"]

    def fire(self, context: HookContext) -> None:
        """Keep the parameters if the loss is finite, else act."""
        loss = context.read("training.loss")
        if loss is None or math.isfinite(loss):
            context.memory.pop("told", None)
            if self.then == "restore":
                context.keep()
            return
        self._act(context, f"the loss is {loss} at iteration {context.moment.iteration}")

    def _act(self, context: HookContext, what: str) -> None:
        if self.then == "fail":
            raise SigmaTrainingError(f"{what}. Lower the learning rate, or clip the gradients.")
        if self.then == "continue":
            if not context.memory.get("told"):  # once for all in a row
                context.log(f"{what}; training continues")
            context.memory["told"] = True
            return
        if self.then == "restore":
            context.bring_back()
        context.log(f"stopped: {what}" + ("; earlier parameters are restored" if self.then == "restore" else ""))
        context.command("stop")
