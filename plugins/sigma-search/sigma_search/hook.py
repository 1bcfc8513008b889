"""Record a value of a trial, and end it if earlier trials were better at the same iteration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import Any

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext

RECORD = "trial.json"  # the file of a run with the values that were recorded


@define(eq=False, kw_only=True)
class TrialHook(Hook):
    """Record ``value`` in the file ``trial.json`` of the run, and end training with the status ``pruned``.

    A search adds this hook to its trials. It compares at the moments of ``bounds`` alone, so that the result does
    not depend on time.

    Args:
        value: Address of the value.
        maximise: Whether higher values are better.
        bounds: An iteration, an epoch and a value each; a trial that is worse at that moment is pruned. Those of
            former versions have no epoch.
        start: How many epochs or iterations are never pruned.
        best: Whether the best value so far is compared, in place of the present one.
        rule: What the bounds are, for the reason.
    """

    every: TimeStep = every(1, "epoch")
    value: str = field(default="validation.loss", kw_only=False)
    maximise: bool = False
    bounds: Sequence[Sequence[float]] = ()
    start: TimeStep | None = None
    best: bool = False
    rule: str = "the bound of earlier trials"
    priority: int = -90  # after hooks that measure, before those that stop

    ends = True

    @property
    def reads(self) -> Sequence[str]:
        """Return the value."""
        return [self.value]

    def fire(self, context: HookContext) -> None:
        """Record the value, and end training if it is worse than the bound of this iteration."""
        value, now = context.read(self.value), context.moment
        if value is None:
            return
        values: list[list[float]] = context.memory.setdefault("values", [])
        values.append([now.iteration, now.epoch, float(value)])
        moment = [now.iteration, now.epoch]
        bound = next((bound for *at, bound in self.bounds if at == moment[: len(at)]), None)
        if bound is None or (self.start is not None and now.count(self.start.scale) < self.start.first):
            return
        reached = self._reach(values)
        if isnan(reached) or (reached < bound if self.maximise else reached > bound):
            self._prune(context, reached, bound)

    def has_ended(self, memory: Mapping[str, Any]) -> bool:
        """Return whether the trial was pruned."""
        return bool(memory.get("pruned"))

    def at_end(self, context: HookContext) -> None:
        """Write the values that were recorded; those that are not finite as null."""
        values = [[*at, value if isfinite(value) else None] for *at, value in context.memory.get("values", ())]
        context.write(RECORD, json.dumps({"format": 1, "value": self.value, "values": values}).encode())

    def _reach(self, values: Sequence[Sequence[float]]) -> float:
        """Return the value that is compared: the present one, or the best so far."""
        reached = [value for *_, value in values if not isnan(value)] if self.best else [values[-1][-1]]
        return (max if self.maximise else min)(reached, default=float("nan"))

    def _prune(self, context: HookContext, reached: float, bound: float) -> None:
        context.memory["pruned"] = True
        than = "below" if self.maximise else "above"
        what = f"{self.value} {'at best ' if self.best else ''}{reached:.4g}"
        reason = f"{what} is {than} {bound:.4g}, {self.rule}, at iteration {context.moment.iteration}."
        context.log(f"pruned: {reason}")
        context.command("stop", cause=f"pruned: {reason}")
