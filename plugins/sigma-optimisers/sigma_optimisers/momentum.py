"""Gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Momentum(GradientOptimiser):
    """Update by gradient descent with momentum: ``v <- momentum * v + g``, ``p <- p - learning_rate * v``.

    Polyak, Some Methods of Speeding up the Convergence of Iteration Methods, 1964.  The learning rate's default and
    the arithmetic are those of ``torch.optim.SGD``; ``momentum`` defaults to 0.9, where PyTorch's default is 0.

    Args:
        learning_rate: Step size per unit of velocity.
        momentum: Decay rate of the velocity.
    """

    learning_rate: float = live(1e-3, low=0.0)
    momentum: float = live(0.9, low=0.0, below=1.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the velocity, in units of the gradient."""
        return {"velocity": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step along the new velocity."""
        velocity = hyper["momentum"] * slots["velocity"] + gradient
        return parameter - hyper["learning_rate"] * velocity, {"velocity": velocity}
