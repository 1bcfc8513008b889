"""Steps of equal length."""

from collections.abc import Mapping

from attrs import define

from sigma_kernel import GradientOptimiser
from sigma_kernel import functions as f
from sigma_kernel.graph import Node


@define(eq=False)
class SignDescent(GradientOptimiser):
    """Step against the sign of the gradient: ``p <- p - learning_rate * sign(g)``."""

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step; there are no slots."""
        return parameter - hyper["learning_rate"] * f.sign(gradient), {}
