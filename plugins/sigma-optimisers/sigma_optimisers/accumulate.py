"""Gradient transform: accumulate gradients of several batches for an update."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Slot, Transform, Transformed
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import ge, whole


@define(eq=False)
class AccumulateGradients(Transform):
    """Update with the gradient of ``batches`` consecutive batches as if they were one, and not in between.

    The gradient is ``sum(w * g) / sum(w)``, where ``w`` is what a batch weighs: its number of rows, or the sum of their
    weights, so that ignored labels, sample weights, class weights and a smaller batch at the end of an epoch count for
    what they are; it is 0 if all weights are.  Layer state, such as that of a batch norm, is updated with every batch.
    Accumulation goes on across epochs.  In between, the optimiser's slots and the matching parameters stay, modifiers
    do not act, and a step of the optimiser, such as Adam's ``t``, is an update. Schedules count batches.  Transforms
    listed before it act on the gradient of each batch, those after it on that of all.  Raises SigmaConfigError if the
    optimiser minimises several costs whose rows have different weights.

    Args:
        batches: Number of batches for one update.
    """

    batches: int = field(default=2, validator=[whole, ge(1)])

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return weighted gradients and weights, summed since the last update, and the number of all batches."""
        return {"sum": Slot(), "weight": Slot(0.0, ()), "batches": Slot(0.0, (), "int32")}

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Transformed:
        """Return the means of the gradients so far, and whether there are enough of them."""
        means, slots, due = dict(gradients), {}, {}
        for address, gradient in self.concerned(gradients, objective).items():
            old = {name: objective.slot(address, f"{owner}.{name}") for name in ("sum", "weight", "batches")}
            total, weight = old["sum"] + objective.weight() * gradient, old["weight"] + objective.weight()
            enough = due[address] = f.equal(f.mod(old["batches"], self.batches), self.batches - 1)
            means[address] = total / f.where(f.equal(weight, 0.0), 1.0, weight)
            slots[address, "sum"], slots[address, "weight"] = (f.where(enough, 0.0, x) for x in (total, weight))
            slots[address, "batches"] = old["batches"] + 1
        return Transformed(means, slots, due)
