"""Early stopping: stop training when a value no longer improves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from attrs import define, field

from sigma_hooks.direction import DIRECTIONS, check_direction, higher_is_better, say_if_unknown
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Outlook
from sigma_kernel.settings import ge, in_


@define(eq=False, kw_only=True)
class EarlyStop(Hook):
    """Stop training when ``value`` has not improved for ``patience`` firings in a row.

    Args:
        value: Address of the value.
        patience: Firings without an improvement that end training.
        by: An improvement is better than the best by more than this, in units of the value.
        better: Whether lower or higher values are better; ``automatic`` asks the metric published there; for losses,
            costs and values without a metric, lower is better.
        restore: Whether the parameters of the best moment are restored at the end, whatever ends training.
    """

    every: TimeStep = every(1, "epoch")
    value: str = field(default="validation.loss", kw_only=False)
    patience: int = field(default=5, validator=ge(1))
    by: float = field(default=0.0, validator=ge(0.0))
    better: str = field(default="automatic", validator=in_(DIRECTIONS))
    restore: bool = False
    priority: int = -50

    ends = True

    @property
    def reads(self) -> Sequence[str]:
        """Return the value to watch."""
        return [self.value]

    def check(self, outlook: Outlook) -> None:
        """Raise SigmaConfigError if neither setting nor metric decides which values are better."""
        check_direction(outlook, self.better, self.value)

    def fire(self, context: HookContext) -> None:
        """Compare with the best value, and stop once patience has run out."""
        value, memory = context.read(self.value), context.memory
        if value is None:
            return
        say_if_unknown(context, self.better, self.value)
        if "best" not in memory or self._is_improvement(context, value, memory["best"]):
            now = context.moment
            memory.update(best=value, waited=0, epoch=now.epoch, iteration=now.iteration)
            if self.restore:
                context.keep()
            return
        memory["waited"] += 1
        if self.has_ended(memory):
            self._stop(context)

    def at_end(self, context: HookContext) -> None:
        """Restore the best parameters if something else has ended training."""
        memory = context.memory
        elsewhere = memory.get("iteration") != context.moment.iteration
        if self.restore and "best" in memory and elsewhere and not self.has_ended(memory):
            context.bring_back()
            context.log(f"restored: {self._best(memory)}")

    def has_ended(self, memory: Mapping[str, Any]) -> bool:
        """Return whether patience has run out."""
        return int(memory.get("waited", 0)) >= self.patience

    def _is_improvement(self, context: HookContext, value: float, best: float) -> bool:
        gain = value - best if higher_is_better(context, self.better, self.value) else best - value
        return gain > self.by or (isnan(best) and not isnan(value))

    def _stop(self, context: HookContext) -> None:
        memory = context.memory
        back = "; its parameters are restored" if self.restore else ""
        context.log(f"stopped: {self._best(memory)}{back}")
        if self.restore:
            context.bring_back()
        context.command("stop")

    def _best(self, memory: Mapping[str, Any]) -> str:
        return f"{self.value} was best in epoch {memory['epoch']} ({memory['best']:.4g})"
