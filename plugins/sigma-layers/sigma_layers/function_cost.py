"""Cost from your own graph function."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.graph import Node, Spec
from sigma_layers.settings import call_function, check_takes, function


@define(eq=False)
class FunctionCost(CostLayer):
    """Minimise a function of output and targets: ``FunctionCost(lambda y, t: f.mean(f.abs(y - t)))``.

    A scalar is taken as an unweighted mean over the rows.  For a weighted mean, return
    ``Totals(f.sum(weights * losses), f.sum(weights))``: shards and evaluations of a split then combine correctly.  If
    the data has sample weights, they are the function's third argument.

    Shapes: output ``(batch, ...)`` and the section ``targets`` -> scalar, a mean over the batch, or Totals.

    Args:
        function: Function of output and targets that returns a scalar, or Totals.
    """

    function: Callable[..., Node | Totals] = field(validator=function)

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the function's value; it is also given the sample weights, ``(batch,)``, if the data has them."""
        given = {"output": output, "targets": targets} | ({} if weights is None else {"weights": weights})
        check_takes(self.function, *given)
        return call_function(self.function, *given.values())

    def output_size(self, targets: Spec, classes: int = 0) -> None:
        """Return None: a function may compare outputs and targets of any sizes."""
