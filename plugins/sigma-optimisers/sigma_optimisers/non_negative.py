"""Parameter modifier: no negative weights."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Modifier
from sigma_kernel.graph import Node


@define(eq=False)
class NonNegative(Modifier):
    """Set negative elements of the matching parameters to 0 after each update.

    Projected gradient descent: Goldstein, Convex Programming in Hilbert Space, 1964; Levitin and Polyak, Constrained
    Minimization Methods, 1966. Same as ``keras.constraints.NonNeg``.
    """

    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        """Return the parameter with 0 in place of negative elements."""
        return f.maximum(parameter, 0.0)
