"""Check the numbers of a run against the reference while it trains."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_hooks.agreement import Difference, differences
from sigma_hooks.locating import MORE, SEEDS, Locator
from sigma_hooks.reference import Reference
from sigma_hooks.repeating import repeated
from sigma_kernel.clock import COUNTED, TimeScale, TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Outlook
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_kernel.settings import ge
from sigma_kernel.training.step.iteration import Iteration


@define(eq=False, kw_only=True)
class Verify(Hook):
    """Compare one iteration, whenever due, with the reference: state, loss and metrics; end training if they differ.

    The iteration runs as any other.  It is then repeated from a copy of the state before it, op by op on NumPy, without
    a plan, and three times more with every rounded result moved by one unit in its last place.  A number may be off by
    ``tolerance`` times the largest distance to these three, plus the root mean square of the distances over its array,
    plus one unit in its own last place; integers that rounding does not decide must be equal.  Only where something
    differs are there twelve more roundings, to be sure, and then all values of the step, to name the op.  Training gets
    the same bits with this hook and without.
    """

    every: TimeStep = every(1, "epoch")
    tolerance: float = field(default=32.0, validator=ge(1))
    priority: int = 1000  # before anybody saves what is wrong

    @property
    def repeats(self) -> bool:
        """Repeat the iteration after which it is due."""
        return True

    def check(self, outlook: Outlook) -> None:
        """Refuse times at which there is no iteration to repeat, and the background."""
        scale = self.every.scale
        if scale not in COUNTED or scale is TimeScale.SECOND:
            raise SigmaConfigError(f"verify: cannot fire every {scale.value}. Use iterations, epochs or samples.")
        if self.background or self.over_budget == "background":
            raise SigmaConfigError("verify: must act at once. It cannot run in the background.")

    def fire(self, context: HookContext) -> None:
        """Compare; raise SigmaTrainingError for what differs."""
        iteration: Iteration | None = context.iteration
        if iteration is None:
            return
        if wrong := self._wrong(iteration):
            raise SigmaTrainingError(self._sentence(iteration, wrong))
        if not context.memory.get("agreed"):
            context.log(f"verified: iteration {context.moment.iteration} agrees with the reference")
        context.memory["agreed"] = context.memory.get("agreed", 0) + 1

    def _wrong(self, iteration: Iteration) -> list[Difference]:
        """Return what differs, for all that a few roundings and then many say."""
        wanted, moved = repeated(iteration, Reference()), list[dict[str, np.ndarray]]()
        for seeds in (SEEDS, MORE):
            error = iteration.steps.programs.backend.function_error
            moved += [repeated(iteration, Reference(seed, error)) for seed in seeds]
            if not (wrong := differences(iteration.outcome, wanted, moved, self.tolerance)):
                break
        return wrong

    def _sentence(self, iteration: Iteration, wrong: list[Difference]) -> str:
        worst = max(wrong, key=lambda difference: abs(difference.found - difference.wanted) / (difference.allowed or 1))
        others = f", and {len(wrong) - 1} more arrays differ" if len(wrong) > 1 else ""
        return (
            f"iteration {iteration.steps.moment.iteration + 1} differs from the reference: {worst}{others}. "
            f"{self._located(iteration)}. Go on from the last checkpoint with another backend, and report this."
        )

    def _located(self, iteration: Iteration) -> str:
        """Return which op goes wrong, or why that cannot be told."""
        locator = Locator(own=iteration.steps.programs.backend, tolerance=self.tolerance)
        repeated(iteration, locator)
        if locator.faults:
            return str(min(locator.faults, key=lambda fault: fault.order))
        return (
            "The op cannot be located: where every value is kept, the backend computes each of them right, so that the "
            "fault lies in how it plans the whole step"
        )
