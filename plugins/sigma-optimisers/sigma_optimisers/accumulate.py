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
    """Update with the mean of the gradients of ``batches`` consecutive batches, and not in between.

    For costs that are means over the batch, and batches of equal size, this is the update of one batch of ``batches``
    times the size; a smaller batch at the end of an epoch counts as much as the others. Layer state, such as that of a
    batch norm, is updated with every batch.  Accumulation goes on across epochs.  In between, the optimiser's slots and
    the matching parameters stay, modifiers do not act, and a step of the optimiser, such as Adam's ``t``, is an
    update. Schedules count batches.  Transforms listed after it act on the mean. Same as
    ``gradient_accumulation_steps`` of Keras.

    Args:
        batches: Number of batches for one update.
    """

    batches: int = field(default=2, validator=[whole, ge(1)])

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the sum of the gradients since the last update, and the number of all batches."""
        return {"sum": Slot(), "batches": Slot(0.0, (), "int32")}

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Transformed:
        """Return the means of the gradients so far, and whether there are enough of them."""
        means, slots, due = dict(gradients), {}, {}
        for address, gradient in self.concerned(gradients, objective).items():
            before, done = (objective.slot(address, f"{owner}.{name}") for name in ("sum", "batches"))
            there, total = f.mod(done, self.batches), before + gradient
            due[address] = f.equal(there, self.batches - 1)
            means[address] = total / float(self.batches)
            slots[address, "sum"], slots[address, "batches"] = f.where(due[address], 0.0, total), done + 1
        return Transformed(means, slots, due)
