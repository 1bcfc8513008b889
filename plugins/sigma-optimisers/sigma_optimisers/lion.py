"""Lion: the sign of an interpolated momentum."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Lion(GradientOptimiser):
    """Update by Lion: every element moves by the learning rate, along the sign of gradient and momentum.

    ``p <- p - learning_rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)``,
    then ``m <- beta2 * m + (1 - beta2) * g``.

    Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, program 1 and its defaults.

    Args:
        learning_rate: Length of each element's step, in units of the parameter; a third to a tenth of Adam's.
        beta1: Share of the momentum in the direction.
        beta2: Decay rate of the momentum.
        weight_decay: Fraction of the parameter removed per unit of learning rate; 3 to 10 times that of AdamW.
    """

    learning_rate: float = live(1e-4, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.99, low=0.0, below=1.0)
    weight_decay: float = live(0.0, low=0.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the momentum, in units of the gradient."""
        return {"momentum": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        beta1, beta2, before = hyper["beta1"], hyper["beta2"], slots["momentum"]
        direction = f.sign(beta1 * before + (1.0 - beta1) * gradient) + hyper["weight_decay"] * parameter
        return parameter - hyper["learning_rate"] * direction, {"momentum": beta2 * before + (1.0 - beta2) * gradient}
