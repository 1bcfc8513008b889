"""End training when a criterion holds."""

from __future__ import annotations

from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.training.criteria import Criterion

EACH_ITERATION = ("iteration", "second", "sample", "training.")  # what changes between the ends of two epochs


@define(eq=False, kw_only=True)
class Stop(Hook):
    """End training at the first boundary at which ``when`` holds.

    It is asked once an epoch, or at every iteration if the criterion is about something that changes faster, unless
    ``every`` says otherwise.  Without a criterion, training ends when ``every`` is due for the first time.
    """

    every: TimeStep | None = None  # type: ignore[assignment]  # decided below
    priority: int = -100  # after everything that may still want to measure

    def __attrs_post_init__(self) -> None:
        """Read the criterion, if it is a text, and decide how often to ask."""
        self.when = Criterion.parse(self.when) if isinstance(self.when, str) else self.when
        if self.every is None:
            asked = self.when.addresses() if self.when is not None else ()
            fast = any(address.startswith(EACH_ITERATION) for address in asked)
            self.every = every(1, "iteration" if fast else "epoch")

    @property
    def ends(self) -> bool:
        """Return that this is what it is for."""
        return True

    def run(self, context: HookContext) -> None:
        """Stop."""
        context.tell(f"stopped: {self.when}" if self.when is not None else f"stopped: {self.every}")
        context.command("stop")
