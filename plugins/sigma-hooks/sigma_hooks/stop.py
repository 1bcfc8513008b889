"""End training when a criterion holds."""

from __future__ import annotations

from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.criteria import Criterion

EACH_ITERATION = ("iteration", "second", "sample", "training.")  # what changes between the ends of two epochs
AT_ANY_TIME = ("switch.",)  # what people change


@define(eq=False, kw_only=True)
class Stop(Hook):
    """End training at the first boundary at which ``when`` holds.

    Unless ``every`` says otherwise, it is asked once an epoch, ten times a second if the criterion is about nothing but
    switches, or at every iteration if it is about something that changes as fast.  Without a criterion, training ends
    when ``every`` is due for the first time.
    """

    every: TimeStep | None = None  # type: ignore[assignment]  # decided below
    priority: int = -100  # after everything that may still want to measure

    def __attrs_post_init__(self) -> None:
        """Read the criterion, if it is a text, and decide how often to ask."""
        self.when = Criterion.parse(self.when) if isinstance(self.when, str) else self.when
        if self.every is None:
            asked = self.when.addresses() if self.when is not None else ()
            if any(address.startswith(EACH_ITERATION) for address in asked):
                self.every = every(1, "iteration")
            elif asked and all(address.startswith(AT_ANY_TIME) for address in asked):
                self.every = every(0.1, "second")  # soon enough for people, and no burst is cut for it
            else:
                self.every = every(1, "epoch")

    @property
    def ends(self) -> bool:
        """Return that this is what it is for."""
        return True

    def fire(self, context: HookContext) -> None:
        """Stop."""
        context.log(f"stopped: {self.when}" if self.when is not None else f"stopped: {self.every}")
        context.command("stop")
