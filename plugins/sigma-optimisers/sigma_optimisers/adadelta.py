"""Adadelta: adaptive steps without a learning rate to tune."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Adadelta(GradientOptimiser):
    """Update by Adadelta: scale each gradient by the ratio of past changes to past gradients.

    ``s <- decay * s + (1 - decay) * g^2``, ``d = g * sqrt(u + epsilon) / sqrt(s + epsilon)``,
    ``u <- decay * u + (1 - decay) * d^2``, ``p <- p - learning_rate * d``.

    Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.  Defaults and arithmetic are those of
    ``torch.optim.Adadelta`` (its ``rho`` is ``decay``).

    Args:
        learning_rate: Factor on each change; the paper's method has 1.
        decay: Decay rate of the two moving averages.
        epsilon: Added to both averages, in their units.
    """

    learning_rate: float = live(1.0, low=0.0)
    decay: float = live(0.9, low=0.0, below=1.0)
    epsilon: float = live(1e-6, low=0.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the averages of squared gradients and of squared changes."""
        return {"square_gradient": Slot(), "square_change": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        decay, epsilon = hyper["decay"], hyper["epsilon"]
        squares = decay * slots["square_gradient"] + (1.0 - decay) * gradient * gradient
        change = gradient * f.sqrt(slots["square_change"] + epsilon) / f.sqrt(squares + epsilon)
        changes = decay * slots["square_change"] + (1.0 - decay) * change * change
        return parameter - hyper["learning_rate"] * change, {"square_gradient": squares, "square_change": changes}
