"""Check the numbers of a run against the reference while it trains."""

from __future__ import annotations

from functools import partial

from attrs import define, field

from sigma_hooks.agreement import Difference, differences
from sigma_hooks.locating import MORE, SEEDS, Locator
from sigma_hooks.reference import Reference
from sigma_kernel.checks import ge
from sigma_kernel.clock import COUNTED, TimeScale, TimeStep, every
from sigma_kernel.contracts import Backend, Hook, HookContext, Outlook
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError


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

    def run(self, context: HookContext) -> None:
        """Compare; raise SigmaTrainingError for what differs."""
        found, wanted = context.repeat(), context.repeat(lambda own: Reference())
        moved = [context.repeat(partial(_reference, seed)) for seed in SEEDS]
        wrong = differences(found, wanted, moved, self.tolerance)
        if wrong:
            moved += [context.repeat(partial(_reference, seed)) for seed in MORE]
            wrong = differences(found, wanted, moved, self.tolerance)
        if wrong:
            raise SigmaTrainingError(self._sentence(context, wrong))
        if not context.memory.get("agreed"):
            context.tell(f"verified: iteration {context.moment.iteration} agrees with the reference")
        context.memory["agreed"] = context.memory.get("agreed", 0) + 1

    def _sentence(self, context: HookContext, wrong: list[Difference]) -> str:
        worst = max(wrong, key=lambda difference: abs(difference.found - difference.wanted) / (difference.allowed or 1))
        others = f", and {len(wrong) - 1} more arrays differ" if len(wrong) > 1 else ""
        return (
            f"iteration {context.moment.iteration} differs from the reference: {worst}{others}. "
            f"{self._located(context)}. Go on from the last checkpoint with another backend, and report this."
        )

    def _located(self, context: HookContext) -> str:
        """Return which op goes wrong, or why that cannot be told."""
        locators: list[Locator] = []

        def locating(own: Backend) -> Backend:
            locators.append(Locator(own=own, tolerance=self.tolerance))
            return locators[-1]

        context.repeat(locating)
        if faults := locators[0].faults:
            return str(min(faults, key=lambda fault: fault.order))
        return (
            "The op cannot be located: where every value is kept, the backend computes each of them right, so that the "
            "fault lies in how it plans the whole step"
        )


def _reference(seed: int, own: Backend) -> Backend:
    return Reference(seed, own.function_error)
