"""Momentum: roll downhill."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph.node import Node, Spec


@define(eq=False)
class Momentum(GradientOptimiser):
    """Follow a velocity that gathers the gradients: ``v <- momentum * v + g``, ``p <- p - learning_rate * v``.

    Polyak, Some Methods of Speeding up the Convergence of Iteration Methods, 1964.  The learning rate's default and
    the arithmetic are those of ``torch.optim.SGD``; there ``momentum`` has no default but 0, here it is 0.9.
    """

    learning_rate: float = live(1e-3, low=0.0, doc="length of a step for each unit of velocity")
    momentum: float = live(0.9, low=0.0, below=1.0, doc="share of the velocity that one step hands to the next")

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the velocity, in units of the gradient."""
        return {"velocity": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step along the new velocity."""
        velocity = hyper["momentum"] * slots["velocity"] + gradient
        return parameter - hyper["learning_rate"] * velocity, {"velocity": velocity}
