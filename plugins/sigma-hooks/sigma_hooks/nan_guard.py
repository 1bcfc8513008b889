"""Decide what happens when the loss is not finite."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import define, field

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.settings import in_


@define(eq=False, kw_only=True)
class NanGuard(Hook):
    """Act at once when the loss is not finite.

    ``then`` is ``fail`` (end with an error), ``stop`` (end as it is), or ``restore``: bring back the parameters of the
    last time this hook was due and all was well, and stop.
    """

    every: TimeStep = every(1, "epoch")
    then: str = field(default="fail", validator=in_(("fail", "stop", "restore")))
    priority: int = 100  # before anything that would publish nonsense

    @property
    def guards(self) -> bool:
        """Run at once when the loss is not finite."""
        return True

    @property
    def reads(self) -> Sequence[str]:
        """Return the loss."""
        return ["training.loss"]

    def fire(self, context: HookContext) -> None:
        """Keep what is good; act on what is not."""
        loss = context.read("training.loss")
        if loss is None or math.isfinite(loss):
            if self.then == "restore":
                context.keep()
            return
        self._act(context, f"the loss is {loss} at iteration {context.moment.iteration}")

    def _act(self, context: HookContext, what: str) -> None:
        if self.then == "fail":
            raise SigmaTrainingError(f"{what}. Lower the learning rate, or clip the gradients.")
        if self.then == "restore":
            context.bring_back()
        context.log(f"stopped: {what}" + ("; earlier parameters are back" if self.then == "restore" else ""))
        context.command("stop")
