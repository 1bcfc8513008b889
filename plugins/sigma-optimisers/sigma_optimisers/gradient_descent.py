"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import GradientOptimiser, live
from sigma_kernel.graph import Node


@define(eq=False)
class GradientDescent(GradientOptimiser):
    """Update by gradient descent: ``p <- p - learning_rate * g``.

    Robbins and Monro, A Stochastic Approximation Method, 1951.  Defaults and arithmetic are those of
    ``torch.optim.SGD``.

    Args:
        learning_rate: Step size per unit of gradient.
    """

    learning_rate: float = live(1e-3, low=0.0)

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step; there are no slots."""
        return parameter - hyper["learning_rate"] * gradient, {}
