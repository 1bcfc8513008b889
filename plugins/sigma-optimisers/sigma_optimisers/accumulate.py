"""Gradient transform: accumulate gradients of several batches for an update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Slot, Transform, Transformed
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Node, Shape, Spec
from sigma_kernel.settings import ge, whole


@define(eq=False)
class AccumulateGradients(Transform):
    """Update with the gradient of ``batches`` consecutive batches as if they were one, and not in between.

    The gradient is ``sum(w * g) / sum(w)``, where ``w`` is the weight of a batch: its number of rows, or the sum of
    their weights, so that ignored labels, sample weights, class weights and a smaller batch at the end of an epoch
    count for what they are; it is 0 if all weights are.  Layer state, such as that of a batch norm, is updated with
    every batch. Accumulation continues across epochs.  In between, the optimiser's slots and the matching parameters
    stay, modifiers do not act, and a step of the optimiser, such as Adam's ``t``, is an update. Schedules count
    batches.  Transforms listed before it act on the gradient of each batch, those after it on that of all.

    Each of several costs has its own mean, and its own sums in memory. If their rows have different weights, it must be
    the first transform, or raises SigmaConfigError.

    Args:
        batches: Number of batches for one update.
    """

    batches: int = field(default=2, validator=[whole, ge(1)])

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return weighted gradients and weights, summed since the last update, and the number of all batches."""
        sums = {"sum": Slot(per_cost=True), "weight": Slot(0.0, (), per_cost=True)}
        return {**sums, "batches": Slot(0.0, (), "int32")}

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Transformed:
        """Return the means of the gradients so far, and whether there are enough of them."""
        means, slots, due, parts = dict(gradients), {}, {}, _parts(gradients, objective)
        for address, gradient in self.select_gradients(gradients, objective).items():
            held = {name: objective.slot(address, f"{owner}.{name}") for name in ("sum", "weight", "batches")}
            enough = due[address] = f.equal(f.mod(held["batches"], self.batches), self.batches - 1)
            sums = _add_terms(held["sum"], [weight * own[address] for weight, own in parts], gradient.shape)
            weights = _add_terms(held["weight"], [weight for weight, _ in parts], ())
            over = [f.where(f.equal(weight, 0.0), 1.0, weight) for weight in weights]
            means[address] = reduce(add, [total / weight for total, weight in zip(sums, over, strict=True)])
            slots[address, "sum"], slots[address, "weight"] = (
                f.where(enough, 0.0, _like(held[name], new)) for name, new in (("sum", sums), ("weight", weights))
            )
            slots[address, "batches"] = held["batches"] + 1
        return Transformed(means, slots, due)


def _parts(gradients: Mapping[str, Node], objective: Objective) -> list[tuple[Node, Mapping[str, Node]]]:
    """Return weights and gradients of the parts of the loss; there is one part if all costs weigh alike."""
    parts, before = objective.parts(), objective.gradients()
    if len(parts) == 1:
        return [(parts[0][0], gradients)]
    if any(gradients[address] is not slope for address, slope in before.items()):
        raise SigmaConfigError(
            "accumulate: the costs have rows of different weights, and transforms before it act on their sum. "
            "List accumulate first."
        )
    return [*parts]


def _add_terms(held: Node, new: Sequence[Node], shape: Shape) -> list[Node]:
    """Return sums with one more term each; a first axis holds several sums, if there is room."""
    if held.shape == shape:
        return [held + new[0]]
    old = [f.squeeze(f.narrow(held, 0, i, i + 1), 0) for i in range(held.shape[0])]
    return [term + other for term, other in zip(old, new, strict=False)]


def _like(held: Node, sums: Sequence[Node]) -> Node:
    """Return sums as a slot holds them; for costs that share a sum, the rest of it stays 0."""
    if held.shape == sums[0].shape:
        return sums[0]
    rest = [f.zeros(sums[0].shape, sums[0].dtype)] * (held.shape[0] - len(sums))
    return f.stack(*sums, *rest)
