"""Track the minimum and maximum of a value."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class Extrema(Hook):
    """Publish ``extrema.<value>.minimum`` and ``extrema.<value>.maximum`` over all firings of this hook.

    Args:
        value: Address of the value.
    """

    every: TimeStep = every(1, "epoch")
    value: str = field(kw_only=False)

    @property
    def reads(self) -> Sequence[str]:
        """Return the value to watch."""
        return [self.value]

    @property
    def writes(self) -> Sequence[str]:
        """Return the two addresses."""
        return [f"extrema.{self.value}.minimum", f"extrema.{self.value}.maximum"]

    def fire(self, context: HookContext) -> None:
        """Update the extrema with the value, and publish them."""
        value = context.read(self.value)
        if value is None:
            return
        memory = context.memory
        memory["minimum"] = min(memory.get("minimum", value), value)
        memory["maximum"] = max(memory.get("maximum", value), value)
        for name in ("minimum", "maximum"):
            context.publish(f"extrema.{self.value}.{name}", memory[name])
