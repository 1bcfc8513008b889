"""Parameter modifier: multiply by a factor after each update."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import Modifier, live
from sigma_kernel.graph import Node


@define(eq=False)
class ScaleParameter(Modifier):
    """Multiply the matching parameters by ``factor`` after each update: below 1 they decay, at 0 they stay 0.

    Hanson and Pratt, Comparing Biases for Minimal Network Construction with Back-Propagation, 1989.

    Args:
        factor: Factor on a parameter after each update.
    """

    factor: float = live(0.999, low=0.0)

    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        """Return the parameter times the factor."""
        return parameter * settings["factor"]
