"""Dot products of two branches."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.axes import place
from sigma_layers.settings import flag, whole


@define(eq=False, init=False)
class Dot(Layer):
    """Multiply the layer before this one by a branch, and add up along an axis: ``left + Dot(right)``.

    With ``cosine``, vectors along the axis have length 1 before, which gives the cosine of their angle; that of a
    vector of zeros is 0.

    Shapes: ``(batch, n)`` and ``(batch, n)`` -> ``(batch, 1)``; otherwise ``(batch, *a, n)`` and ``(batch, *b, n)`` ->
    ``(batch, *a, *b)``, n being on the given axis.

    Same as ``keras.layers.Dot``.

    Args:
        branches: Architecture whose value it is multiplied by; two, if no layer is before this one.
        axis: Axis of both along which products are added; the batch is axis 0, and negative axes count from the end.
        cosine: Whether vectors along the axis are divided by their lengths.
    """

    branches: tuple[Architecture, ...]
    axis: int = field(default=-1, validator=whole)
    cosine: bool = field(default=False, validator=flag)

    def __init__(self, *branches: Architecture, axis: int = -1, cosine: bool = False, name: str | None = None) -> None:
        self.__attrs_init__(branches, axis, cosine, name=name)

    def forward(self, context: Context, x: Node, y: Node) -> Node:
        """Return the products; raises SigmaNetworkError unless both have this axis, equally long."""
        left, right = (self._move_axis_last(operand) for operand in (x, y))
        if left.shape[-1] != right.shape[-1]:
            raise SigmaNetworkError(
                f"dot({x.shape[1:]}, {y.shape[1:]}): axis {self.axis} has sides {left.shape[-1]} and "
                f"{right.shape[-1]}, which must be equal. Use Dense or Reshape before, or another axis."
            )
        if len(left.shape) == len(right.shape) == 2:
            return f.sum(left * right, 1, keepdims=True)
        rows, columns = (f.reshape(operand, (operand.shape[0], -1, operand.shape[-1])) for operand in (left, right))
        return f.reshape(rows @ f.swap_axes(columns, 1, 2), (*left.shape[:-1], *right.shape[1:-1]))

    def _move_axis_last(self, x: Node) -> Node:
        """Return x with the axis as the last one, and with vectors along it of length 1 for a cosine."""
        at = place("dot", x.shape[1:], self.axis)
        turned = f.permute(x, (*(k for k in range(len(x.shape)) if k != at), at))
        if not self.cosine:
            return turned
        length = f.norm(turned, -1, keepdims=True)
        return turned / f.where(f.equal(length, 0.0), 1.0, length)
