"""Check iterations against the reference backend, op by op, during training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, field

from sigma_hooks.agreement import Difference, differences
from sigma_hooks.locating import MORE, SEEDS, Locator
from sigma_hooks.reference import Reference
from sigma_kernel import COUNTED, TimeScale, TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Outlook, Repeatable
from sigma_kernel.errors import SigmaConfigError, SigmaDifferenceError
from sigma_kernel.settings import ge


@define(eq=False, kw_only=True)
class Verify(Hook):
    """Compare state, loss and metrics of an iteration with the reference; fail if they differ.

    The iteration runs as any other.  It is then repeated from a copy of its initial state, op by op with NumPy, and
    three more times with every rounded result perturbed by one unit in its last place.  The tolerance of an element is
    ``tolerance`` times the sum of its largest distance to these three, the root mean square of the distances over its
    array, and one unit in its last place; integers must be equal unless rounding decides them.  If something differs,
    twelve more perturbed repetitions confirm it, and all intermediate values are compared to locate the op.  This hook
    does not change a bit of the training.

    Args:
        tolerance: Factor on what rounding explains.
    """

    every: TimeStep = every(1, "epoch")
    tolerance: float = field(default=32.0, validator=ge(1))
    priority: int = 1000  # before a hook saves a wrong state

    repeats = True

    def check(self, outlook: Outlook) -> None:
        """Raise SigmaConfigError for a schedule without an iteration to repeat, and for the background."""
        scale = self.every.scale
        if scale not in COUNTED or scale is TimeScale.SECOND:
            raise SigmaConfigError(f"verify: cannot fire every {scale.value}. Use iterations, epochs or samples.")
        if self.background or self.over_budget == "background":
            raise SigmaConfigError("verify: cannot run in the background: it needs the current parameters.")

    def fire(self, context: HookContext) -> None:
        """Compare; raise SigmaDifferenceError for what differs."""
        iteration = context.iteration
        if iteration is None:
            return
        if wrong := self._wrong(iteration):
            raise SigmaDifferenceError(self._sentence(context.moment.iteration, wrong, self._locate_fault(iteration)))
        if not context.memory.get("agreed"):
            context.log(f"verified: iteration {context.moment.iteration} agrees with the reference")
        context.memory["agreed"] = context.memory.get("agreed", 0) + 1

    def _wrong(self, iteration: Repeatable) -> list[Difference]:
        """Return the differences that remain after a few and then many perturbed roundings."""
        wanted, moved = iteration.repeat(Reference()), list[Mapping[str, np.ndarray]]()
        for seeds in (SEEDS, MORE):
            error = iteration.backend.function_error
            moved += [iteration.repeat(Reference(seed, error)) for seed in seeds]
            if not (wrong := differences(iteration.outcome, wanted, moved, self.tolerance)):
                break
        return wrong

    def _sentence(self, iteration: int, wrong: list[Difference], located: str) -> str:
        worst = max(wrong, key=lambda difference: abs(difference.found - difference.wanted) / (difference.allowed or 1))
        others = f", and {len(wrong) - 1} more arrays differ" if len(wrong) > 1 else ""
        return (
            f"iteration {iteration} differs from the reference: {worst}{others}. "
            f"{located}. Resume from the last checkpoint with another backend, and report this."
        )

    def _locate_fault(self, iteration: Repeatable) -> str:
        """Return the wrong op as text, or why it cannot be located."""
        locator = Locator(own=iteration.backend, tolerance=self.tolerance)
        iteration.repeat(locator)
        if locator.faults:
            return str(min(locator.faults, key=lambda fault: fault.order))
        return (
            "The op cannot be located: with all intermediate values kept, the backend computes each of them correctly, "
            "so the fault is in how it plans the whole step"
        )
