"""A cost made of a graph function of your own."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.contracts import Context, CostLayer
from sigma_kernel.graph.node import Node
from sigma_layers.settings import applied, function


@define(eq=False)
class FunctionCost(CostLayer):
    """Minimise a function of output and targets: ``FunctionCost(lambda y, t: f.mean(f.abs(y - t)))``.

    Shapes: output ``(batch, ...)`` and the section ``targets`` -> one number, a mean over the batch.
    """

    function: Callable[[Node, Node], Node] = field(validator=function)

    def run(self, context: Context, output: Node, targets: Node) -> Node:
        """Return the function's value."""
        return applied(self.function, output, targets)
