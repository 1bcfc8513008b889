"""Aggregate a value over time: mean, sum, minimum or maximum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.settings import deep_iterable, ge, in_, optional

WAYS: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "sum": sum, "minimum": min, "maximum": max}


@define(eq=False, kw_only=True)
class Accumulate(Hook):
    """Publish ``accumulated.<value>.<way>`` for each of ``ways``: ``mean``, ``sum``, ``minimum``, ``maximum``.

    Args:
        value: Address of the value.
        window: Number of firings of this hook to take it over; by default all.
        ways: What to publish.
    """

    every: TimeStep = every(1, "epoch")
    value: str = field(kw_only=False)
    window: int | None = field(default=None, validator=optional(ge(1)))
    ways: Sequence[str] = field(default=("mean",), validator=deep_iterable(in_(tuple(WAYS))))

    @property
    def reads(self) -> Sequence[str]:
        """Return the value to aggregate."""
        return [self.value]

    @property
    def writes(self) -> Sequence[str]:
        """Return one address for each way."""
        return [f"accumulated.{self.value}.{way}" for way in self.ways]

    def fire(self, context: HookContext) -> None:
        """Add the value, and publish the aggregates."""
        value = context.read(self.value)
        if value is None:
            return
        aggregates = self._accumulate_window(context, value) if self.window else self._accumulate_all(context, value)
        for way in self.ways:
            context.publish(f"accumulated.{self.value}.{way}", aggregates[way])

    def _accumulate_window(self, context: HookContext, value: float) -> dict[str, float]:
        last = [*context.memory.get("last", []), value][-(self.window or 0) :]
        context.memory["last"] = last
        return {way: WAYS[way](last) for way in self.ways}

    def _accumulate_all(self, context: HookContext, value: float) -> dict[str, float]:
        memory = context.memory
        memory["count"], memory["sum"] = memory.get("count", 0) + 1, memory.get("sum", 0.0) + value
        memory["minimum"] = min(memory.get("minimum", value), value)
        memory["maximum"] = max(memory.get("maximum", value), value)
        return {**memory, "mean": memory["sum"] / memory["count"]}
