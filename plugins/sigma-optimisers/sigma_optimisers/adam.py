"""Adam: adaptive moment estimation, with bias correction."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Adam(GradientOptimiser):
    """Update by Adam: bias-corrected first moment over the root of the second, ``t`` being the number of the step.

    ``m <- beta1 * m + (1 - beta1) * g``, ``v <- beta2 * v + (1 - beta2) * g^2``,
    ``p <- p - learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)``.

    Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015.  Defaults and arithmetic are those of
    ``torch.optim.Adam``, without ``amsgrad``.

    Args:
        learning_rate: Step size, roughly its upper bound, in units of the parameter.
        beta1: Decay rate of the first moment's moving average.
        beta2: Decay rate of the second moment's moving average.
        epsilon: Avoids division by 0, in units of the gradient.
    """

    learning_rate: float = live(1e-3, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.999, low=0.0, below=1.0)
    epsilon: float = live(1e-8, low=0.0)

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
        # The bias corrections are applied to scalars and to one root, which saves a pass over the whole array.
        scale = hyper["learning_rate"] / (1.0 - beta1**step)
        root = f.sqrt(second) / f.sqrt(1.0 - beta2**step)
        return parameter - scale * first / (root + hyper["epsilon"]), {"first_moment": first, "second_moment": second}
