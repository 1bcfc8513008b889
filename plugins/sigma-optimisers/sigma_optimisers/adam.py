"""Adam: momentum, divided by a running root mean square, both without their bias towards zero."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node, Spec


@define(eq=False)
class Adam(GradientOptimiser):
    """Estimate the gradient's first two moments and step along their ratio, ``t`` being the number of the step.

    ``m <- beta1 * m + (1 - beta1) * g``, ``v <- beta2 * v + (1 - beta2) * g^2``,
    ``p <- p - learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)``.

    Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015.  Defaults and arithmetic are those of
    ``torch.optim.Adam``, without ``amsgrad``.
    """

    learning_rate: float = live(1e-3, low=0.0, doc="greatest usual length of a step, in units of the parameter")
    beta1: float = live(0.9, low=0.0, below=1.0, doc="share of the first moment that one step hands to the next")
    beta2: float = live(0.999, low=0.0, below=1.0, doc="share of the second moment that one step hands to the next")
    epsilon: float = live(1e-8, low=0.0, doc="keeps a step finite where gradients vanish, in units of the gradient")

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the two moments, in units of the gradient and of its square."""
        return {"first_moment": Slot(), "second_moment": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        beta1, beta2 = hyper["beta1"], hyper["beta2"]
        first = beta1 * slots["first_moment"] + (1.0 - beta1) * gradient
        second = beta2 * slots["second_moment"] + (1.0 - beta2) * gradient * gradient
        # Corrections act on scalars and on one root, so that no further pass over the whole array is needed.
        scale = hyper["learning_rate"] / (1.0 - beta1**step)
        root = f.sqrt(second) / f.sqrt(1.0 - beta2**step)
        return parameter - scale * first / (root + hyper["epsilon"]), {"first_moment": first, "second_moment": second}
