"""Step against the sign of the gradient."""

from collections.abc import Mapping

from attrs import define

from sigma_kernel import GradientOptimiser, Node
from sigma_kernel import functions as f


@define(eq=False, kw_only=True)
class SignSteps(GradientOptimiser):
    """Step against the sign of the gradient."""

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step; there are no slots."""
        return parameter - hyper["learning_rate"] * f.sign(gradient), {}
