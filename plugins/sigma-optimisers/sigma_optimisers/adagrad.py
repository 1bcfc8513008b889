"""Adagrad: divide by the root of the sum of squared gradients."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import finite, ge


@define(eq=False)
class Adagrad(GradientOptimiser):
    """Update by Adagrad: divide each gradient by the root of the sum of its squares so far.

    ``s <- s + g^2``, ``p <- p - learning_rate * g / (sqrt(s) + epsilon)``.

    Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011.
    Defaults and arithmetic are those of ``torch.optim.Adagrad``; its ``lr_decay`` is a schedule here.

    Args:
        learning_rate: Step size of the first step, in units of the parameter.
        epsilon: Avoids division by 0, in units of the gradient.
        initial_accumulator: First value of the sum ``s``, in units of the gradient squared.
    """

    learning_rate: float = live(1e-2, low=0.0)
    epsilon: float = live(1e-10, low=0.0)
    initial_accumulator: float = field(default=0.0, validator=[finite, ge(0)])  # the first s, a squared gradient

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the sum of squared gradients."""
        return {"accumulator": Slot(self.initial_accumulator)}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        accumulator = slots["accumulator"] + gradient * gradient
        change = gradient / (f.sqrt(accumulator) + hyper["epsilon"])
        return parameter - hyper["learning_rate"] * change, {"accumulator": accumulator}
