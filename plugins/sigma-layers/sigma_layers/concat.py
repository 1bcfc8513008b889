"""Concatenate branches along an axis."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.settings import whole


@define(eq=False, init=False)
class Concat(Layer):
    """Concatenate the layer before this one and branches: ``Concat(left, right)``.

    Shapes: any number of ``(batch, ...)`` that differ only along ``axis`` -> the same, ``axis`` being their sum.

    Same as ``torch.cat``.

    Args:
        branches: Architectures whose values are concatenated.
        axis: Axis along which they are; the batch is axis 0, which cannot be, and negative axes count from the end.
    """

    branches: tuple[Architecture, ...]
    axis: int = field(default=-1, validator=whole)

    def __init__(self, *branches: Architecture, axis: int = -1, name: str | None = None) -> None:
        self.__attrs_init__(branches, axis, name=name)

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the concatenation; SigmaNetworkError for the batch's axis, SigmaGraphError if shapes do not fit."""
        if self.axis % len(inputs[0].shape) == 0:
            raise SigmaNetworkError(f"concat: axis {self.axis} is the batch. Use axis 1 or higher, or -1 for the last.")
        return f.concat(*inputs, axis=self.axis)
