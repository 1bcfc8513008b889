"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec
from sigma_optimisers.moments import correction


@define(eq=False)
class Adamax(GradientOptimiser):
    """Update by Adamax: bias-corrected first moment over a decaying maximum of gradients, at step ``t``.

    ``m <- beta1 * m + (1 - beta1) * g``, ``u <- max(beta2 * u, |g| + epsilon)``,
    ``p <- p - learning_rate / (1 - beta1^t) * m / u``.

    Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, section 7.1.  Defaults and arithmetic are those of
    ``torch.optim.Adamax``.

    Args:
        learning_rate: Step size, roughly its upper bound, in units of the parameter.
        beta1: Decay rate of the first moment's moving average.
        beta2: Decay rate of the maximum.
        epsilon: Avoids division by 0, in units of the gradient.
    """

    learning_rate: float = live(2e-3, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.999, low=0.0, below=1.0)
    epsilon: float = live(1e-8, low=0.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the first moment and the maximum, in units of the gradient."""
        return {"first_moment": Slot(), "maximum": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        beta1 = hyper["beta1"]
        first = beta1 * slots["first_moment"] + (1.0 - beta1) * gradient
        largest = f.maximum(hyper["beta2"] * slots["maximum"], f.abs(gradient) + hyper["epsilon"])
        scale = hyper["learning_rate"] / correction("beta1", step, hyper)
        return parameter - scale * first / largest, {"first_moment": first, "maximum": largest}
