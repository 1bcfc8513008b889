"""Count how often the loss was lower than ever before."""

from collections.abc import Sequence

from attrs import define

from sigma_kernel import Hook, HookContext, TimeStep, every


@define(eq=False, kw_only=True)
class CountLows(Hook):
    """Count how often the loss was lower than ever before.

    It publishes ``count_lows``.
    """

    every: TimeStep = every(1, "epoch")
    value: str = "training.loss"

    @property
    def reads(self) -> Sequence[str]:
        """Return the address of the value."""
        return [self.value]

    @property
    def writes(self) -> Sequence[str]:
        """Return the address of the count."""
        return ["count_lows"]

    def fire(self, context: HookContext) -> None:
        """Compare with the lowest value so far, which is kept in the memory that is saved with the run."""
        value = context.read(self.value)
        if value is not None and value < context.memory.get("lowest", float("inf")):
            context.memory.update(lowest=float(value), count=context.memory.get("count", 0) + 1)
        context.publish("count_lows", context.memory.get("count", 0))
