"""Parameter modifier: a fixed spectral norm."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Modifier, Objective, Slot, live
from sigma_kernel.graph import Draw, Node, Spec, constant
from sigma_kernel.settings import ge, whole
from sigma_optimisers.units import has, other_axes


@define(eq=False)
class SpectralNorm(Modifier):
    """Scale each matching matrix to a spectral norm, its largest singular value, of ``norm``; one of 0 stays.

    The largest singular value is estimated by power iteration, ``u = W v / |W v|``, ``v = W^T u / |W^T u|``,
    ``s = u^T W v``, from the vector ``v`` of the step before, which is a slot.  A vector is a matrix with one row;
    a parameter of a higher rank has one row for each unit.

    Miyato, Kataoka, Koyama and Yoshida, ICLR 2018, arXiv:1802.05957, as a projection after each update.
    ``W / s`` is computed as in ``torch.nn.utils.parametrizations.spectral_norm``, which instead keeps the unscaled
    matrix and differentiates through the scaling.  Raises SigmaNetworkError if a parameter has no such axis.

    Args:
        norm: Spectral norm after each update.
        axis: Axis along which units lie; the last one for a dense layer's weights of shape ``(inputs, units)``, 0 for
            the kernels of a convolution.
        iterations: Power iterations in each step.
    """

    norm: float = live(1.0, low=0.0)
    axis: int = field(default=-1, kw_only=True, validator=whole)
    iterations: int = field(default=1, kw_only=True, validator=[whole, ge(1)])

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the right singular vector, over all elements of one unit; ``apply`` refuses a missing axis."""
        length = self._matrix(parameter.shape)[1] if has(parameter.shape, self.axis) else 0
        return {"vector": Slot(0.0, (length,))}

    def apply(self, parameter: Node, address: str, objective: Objective, owner: str) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter with the given norm, and the new vector; raises SigmaNetworkError with its address."""
        rest = other_axes(f"{address}: spectral_norm", parameter.shape, self.axis)
        units = [i for i in range(len(parameter.shape)) if i not in rest]
        matrix = f.reshape(f.permute(parameter, (*units, *rest)), self._matrix(parameter.shape))
        right, value = self._largest(matrix, objective.slot(address, f"{owner}.vector"))
        there = f.greater(value, 0.0)
        factor = f.where(there, objective.setting(owner, "norm") / f.where(there, value, 1.0), 1.0)
        return parameter * factor, {"vector": right}

    def _matrix(self, shape: tuple[int, ...]) -> tuple[int, int]:
        length = prod(shape[i] for i in other_axes("spectral_norm", shape, self.axis))
        return prod(shape) // max(1, length), length

    def _largest(self, matrix: Node, right: Node) -> tuple[Node, Node]:
        """Return the right singular vector and the singular value; a vector of 0 is replaced by a random one."""
        first = constant(Draw(0, 0).normal(right.shape), right.dtype)
        right = f.where(f.greater(f.norm(right), 0.0), right, _unit(first))
        for _ in range(self.iterations):
            left = _unit(matrix @ right)
            right = _unit(left @ matrix)
        return right, f.sum(left * (matrix @ right))


def _unit(vector: Node) -> Node:
    """Return a vector divided by its norm; one of 0 stays."""
    norm = f.norm(vector)
    return vector / f.where(f.greater(norm, 0.0), norm, 1.0)
