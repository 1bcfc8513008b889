"""Parameter modifier: unit norm of the weights of each unit."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Modifier, Objective
from sigma_kernel.graph import Node
from sigma_kernel.settings import whole
from sigma_optimisers.units import norms, other_axes


@define(eq=False)
class UnitNorm(Modifier):
    """Scale the incoming weights of each unit to a Euclidean norm of 1; weights of 0 stay.

    A vector is one unit. Same as ``keras.constraints.UnitNorm``. Raises SigmaNetworkError if a parameter has no such
    axis.

    Args:
        axis: Axis along which units lie; the last one for a dense layer's weights of shape ``(inputs, units)``, 0 for
            the kernels of a convolution.
    """

    axis: int = field(default=-1, kw_only=True, validator=whole)

    def apply(self, parameter: Node, address: str, objective: Objective, owner: str) -> tuple[Node, Mapping[str, Node]]:
        """Return the modified parameter and no slots; raises SigmaNetworkError with its address."""
        other_axes(f"{address}: unit_norm", parameter.shape, self.axis)
        return super().apply(parameter, address, objective, owner)

    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        """Return the parameter with the norm of every unit 1."""
        norm = norms("unit_norm", parameter, self.axis)
        return parameter / f.where(f.greater(norm, 0.0), norm, 1.0)
