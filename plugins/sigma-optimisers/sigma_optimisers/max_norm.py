"""Parameter modifier: max-norm constraint on the weights of each unit."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Modifier, Objective, live
from sigma_kernel.graph import Node
from sigma_kernel.settings import whole
from sigma_optimisers.units import norms, other_axes


@define(eq=False)
class MaxNorm(Modifier):
    """Scale the incoming weights of each unit to the Euclidean norm ``limit`` if they exceed it.

    A vector is one unit. Same as ``torch.renorm``. Srivastava et al., Dropout: A Simple Way to Prevent Neural
    Networks from Overfitting, 2014; their limits are 3 to 4. Raises SigmaNetworkError if a parameter has no such axis.

    Args:
        limit: Maximum norm of the weights of one unit, in units of the parameter.
        axis: Axis along which units lie; the last one for a dense layer's weights of shape ``(inputs, units)``.
    """

    limit: float = live(3.0, low=0.0)
    axis: int = field(default=-1, kw_only=True, validator=whole)

    def apply(self, parameter: Node, address: str, objective: Objective, owner: str) -> tuple[Node, Mapping[str, Node]]:
        """Return the modified parameter and no slots; raises SigmaNetworkError with its address."""
        other_axes(f"{address}: max_norm", parameter.shape, self.axis)
        return super().apply(parameter, address, objective, owner)

    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        """Return the parameter with the norm of every unit at most the limit."""
        norm = norms("max_norm", parameter, self.axis)
        limit = settings["limit"]
        long = f.greater(norm, limit)
        return parameter * f.where(long, limit / f.where(long, norm, 1.0), 1.0)
