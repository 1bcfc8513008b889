"""Stop training when a criterion holds."""

from __future__ import annotations

from attrs import define

from sigma_kernel import Criterion, TimeStep, every
from sigma_kernel.contracts import Hook, HookContext

EACH_ITERATION = ("iteration", "second", "sample", "training.")  # values that change within an epoch
AT_ANY_TIME = ("switch.",)  # values that users set


@define(eq=False, kw_only=True)
class Stop(Hook):
    """Stop training at the first boundary at which the criterion ``when`` holds.

    By default the criterion is evaluated once an epoch; ten times a second if it reads switches only; at every
    iteration if it reads a value that changes within an epoch.  Without a criterion, training stops when ``every`` is
    first due.
    """

    every: TimeStep | None = None  # type: ignore[assignment]  # decided below
    priority: int = -100  # after all hooks that may still measure

    ends = True
    stops = True

    def __attrs_post_init__(self) -> None:
        """Parse the criterion if it is text, and choose how often to evaluate it."""
        self.when = Criterion.parse(self.when) if isinstance(self.when, str) else self.when
        if self.every is None:
            asked = self.when.addresses() if self.when is not None else ()
            if any(address.startswith(EACH_ITERATION) for address in asked):
                self.every = every(1, "iteration")
            elif asked and all(address.startswith(AT_ANY_TIME) for address in asked):
                self.every = every(0.1, "second")  # soon enough for users, without cutting bursts short
            else:
                self.every = every(1, "epoch")

    def fire(self, context: HookContext) -> None:
        """Stop."""
        context.log(f"stopped: {self.when}" if self.when is not None else f"stopped: {self.every}")
        context.command("stop")
