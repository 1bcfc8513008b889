"""A cost made of a graph function of your own."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.graph.node import Node
from sigma_layers.settings import applied, function


@define(eq=False)
class FunctionCost(CostLayer):
    """Minimise a function of output and targets: ``FunctionCost(lambda y, t: f.mean(f.abs(y - t)))``.

    A number counts as a mean over the rows, all of them alike.  Where they do not count alike, return
    ``Totals(f.sum(weights * losses), f.sum(weights))``, so that shards and whole splits get the same mean.

    Shapes: output ``(batch, ...)`` and the section ``targets`` -> one number, a mean over the batch, or Totals.
    """

    function: Callable[[Node, Node], Node | Totals] = field(validator=function)

    def forward(self, context: Context, output: Node, targets: Node) -> Node | Totals:
        """Return the function's value."""
        return applied(self.function, output, targets)
