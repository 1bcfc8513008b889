"""Reduce the learning rate when a value no longer improves."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from attrs import define, field

from sigma_hooks.direction import DIRECTIONS, check_direction, higher_is_better, say_if_unknown
from sigma_hooks.reading import read_all
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Outlook
from sigma_kernel.settings import and_, ge, gt, in_, lt


@define(eq=False, kw_only=True)
class ReduceOnPlateau(Hook):
    """Multiply learning rates by ``factor`` when ``value`` has not improved for ``patience`` firings in a row.

    Same as ``torch.optim.lr_scheduler.ReduceLROnPlateau`` with an absolute threshold and a ``patience`` of 1 less: NaN
    is never an improvement, not even at the first firing.

    Args:
        value: Address of the value.
        rates: Address of the learning rate, or a pattern, such as ``optimiser.0-dense.*.learning_rate`` for those of
            one layer.
        factor: Factor on the rates.
        patience: Firings without an improvement that reduce them.
        by: An improvement is better than the best by more than this, in units of the value.
        better: Whether lower or higher values are better; ``automatic`` asks the metric published there; for losses,
            costs and values without a metric, lower is better.
        rest: Firings after a reduction that do not count (cooldown).
        least: Rate below which none falls.
    """

    every: TimeStep = every(1, "epoch")
    value: str = field(default="validation.loss", kw_only=False)
    rates: str = "optimiser.learning_rate"
    factor: float = field(default=0.1, validator=and_(gt(0.0), lt(1.0)))
    patience: int = field(default=10, validator=ge(1))
    by: float = field(default=0.0, validator=ge(0.0))
    better: str = field(default="automatic", validator=in_(DIRECTIONS))
    rest: int = field(default=0, validator=ge(0))
    least: float = field(default=0.0, validator=ge(0.0))

    @property
    def reads(self) -> Sequence[str]:
        """Return the value to watch, and the rates."""
        return [self.value, self.rates]

    def check(self, outlook: Outlook) -> None:
        """Raise SigmaConfigError if neither setting nor metric decides which values are better."""
        check_direction(outlook, self.better, self.value)

    def fire(self, context: HookContext) -> None:
        """Compare with the best value, and reduce the rates once patience has run out."""
        value, memory = context.read(self.value), context.memory
        if value is None:
            return
        say_if_unknown(context, self.better, self.value)
        resting = memory.get("resting", 0)
        if self._is_improvement(context, value, memory.get("best")):
            memory.update(best=value, waited=0)
        else:
            memory["waited"] = 0 if resting else memory.get("waited", 0) + 1
        memory["resting"] = max(0, resting - 1)
        if memory["waited"] >= self.patience:
            memory.update(waited=0, resting=self.rest)
            self._reduce(context)

    def _is_improvement(self, context: HookContext, value: float, best: float | None) -> bool:
        """Return whether a value is better than the best so far; one that is not a number never is."""
        sign = 1.0 if higher_is_better(context, self.better, self.value) else -1.0
        return sign * value > -inf if best is None else sign * (value - best) > self.by

    def _reduce(self, context: HookContext) -> None:
        for address, rate in read_all(context, self.rates).items():
            new = max(rate * self.factor, self.least)
            if new < rate:
                context.command("set", pattern=address, value=new)
                context.log(f"{self.value} no longer improves: {address} reduced to {new:.4g}")
