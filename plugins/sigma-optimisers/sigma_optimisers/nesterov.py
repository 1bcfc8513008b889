"""Nesterov's accelerated gradient descent."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Nesterov(GradientOptimiser):
    """Update with Nesterov momentum: ``v <- momentum * v + g``, ``p <- p - learning_rate * (g + momentum * v)``.

    Nesterov, A Method of Solving a Convex Programming Problem with Convergence Rate O(1/k^2), 1983, in the form of
    Sutskever et al., On the Importance of Initialization and Momentum in Deep Learning, 2013.  The learning rate's
    default and the arithmetic are those of ``torch.optim.SGD(nesterov=True)``; ``momentum`` is 0.9 by default.

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
        """Return the parameter after one step along the look-ahead velocity."""
        velocity = hyper["momentum"] * slots["velocity"] + gradient
        ahead = gradient + hyper["momentum"] * velocity
        return parameter - hyper["learning_rate"] * ahead, {"velocity": velocity}
