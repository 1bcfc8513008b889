"""Learning rate range test: raise the rate and find where the loss falls fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import define, field

from sigma_hooks.reading import read_all
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import ge, gt

MEMORY = 0.9  # decay rate of the loss's moving average


@define(eq=False, kw_only=True)
class LearningRateFinder(Hook):
    """Raise the learning rate from ``low`` to ``high`` over ``steps`` iterations; publish where the loss fell fastest.

    After that, or once the smoothed loss exceeds ``worse`` times its minimum, the parameters, the optimiser's slots and
    the rates are restored, and training stops. Publishes ``learning_rate_finder.rates``, ``.losses`` and
    ``.suggestion``. A schedule also multiplies the rates tried. Smith, Cyclical Learning Rates for Training Neural
    Networks, 2017, section 3.3.

    Args:
        low: First learning rate.
        high: Last learning rate.
        steps: Iterations from the first to the last.
        worse: The search ends once the smoothed loss exceeds this many times its minimum.
        rates: Address of the learning rate, or a pattern of several.
    """

    every: TimeStep = every(1, "iteration")
    low: float = field(default=1e-6, validator=gt(0.0))
    high: float = field(default=1.0, validator=gt(0.0))
    steps: int = field(default=100, validator=ge(5))
    worse: float = field(default=4.0, validator=gt(1.0))
    rates: str = "optimiser.learning_rate"

    guards = True
    ends = True

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if ``low`` is not below ``high``."""
        if self.low >= self.high:
            raise SigmaConfigError(f"learning_rate_finder: low {self.low:g} must be less than high {self.high:g}.")

    @property
    def reads(self) -> Sequence[str]:
        """Return the loss and the rates."""
        return ["training.loss", self.rates]

    @property
    def writes(self) -> Sequence[str]:
        """Return the rates tried, their losses and the suggestion."""
        return [f"learning_rate_finder.{name}" for name in ("rates", "losses", "suggestion")]

    def fire(self, context: HookContext) -> None:
        """Record the loss at the current rate, and raise the rate."""
        memory, loss = context.memory, context.read("training.loss")
        if loss is None or memory.get("over"):
            return
        if "before" not in memory:
            context.keep()
            memory.update(before=read_all(context, self.rates), losses=[])
        elif math.isfinite(loss):
            memory["losses"].append(loss)
        tried = len(memory["losses"])
        if tried == self.steps or not math.isfinite(loss) or self._worse(memory["losses"]):
            self._finish(context)
        else:
            self._set(context, dict.fromkeys(memory["before"], float(self._learning_rates()[tried])))

    def _learning_rates(self) -> np.ndarray:
        return np.geomspace(self.low, self.high, self.steps)

    def _worse(self, losses: Sequence[float]) -> bool:
        if len(losses) < 10:  # the first losses are too noisy
            return False
        smooth = moving_average(losses)
        return bool(smooth[-1] > self.worse * smooth.min() > 0)

    def _set(self, context: HookContext, rates: dict[str, float]) -> None:
        for address, rate in rates.items():
            context.command("set", pattern=address, value=rate)

    def _finish(self, context: HookContext) -> None:
        losses = context.memory["losses"]
        tried = self._learning_rates()[: len(losses)]
        context.bring_back()
        self._set(context, context.memory["before"])
        context.memory["over"] = True
        context.publish("learning_rate_finder.rates", tried.tolist())
        context.publish("learning_rate_finder.losses", list(losses))
        rate = steepest(tried, losses)
        if rate is None:
            context.log("learning rate: the loss did not fall at any rate. Try lower ones.")
        else:
            context.publish("learning_rate_finder.suggestion", rate)
            context.log(f"learning rate: the loss fell fastest at {rate:.3g}; the earlier parameters are restored")
        context.command("stop")


def moving_average(losses: Sequence[float]) -> np.ndarray:
    """Return the bias-corrected exponential moving average, one value for each loss."""
    weights = MEMORY ** np.arange(len(losses))
    sums = [float(weights[: i + 1][::-1] @ losses[: i + 1]) for i in range(len(losses))]
    return np.asarray(np.array(sums) / np.cumsum(weights))


def steepest(rates: np.ndarray, losses: Sequence[float]) -> float | None:
    """Return the rate where the smoothed loss falls fastest over the log of the rate; None if it never falls."""
    if len(losses) < 5:
        return None
    slopes = np.gradient(moving_average(losses), np.log(rates))
    return float(rates[slopes.argmin()]) if slopes.min() < 0 else None
