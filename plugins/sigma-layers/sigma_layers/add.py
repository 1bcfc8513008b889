"""Elementwise sum of branches, as in residual connections."""

from __future__ import annotations

from functools import reduce
from operator import add

from attrs import define

from sigma_kernel.contracts import Architecture, Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node


@define(eq=False, init=False)
class Add(Layer):
    """Add branches to the layer before this one: ``trunk + Dense(8) + Add(trunk)``.

    Shapes: any number of equal ``(batch, ...)`` -> the same.  There is no broadcasting.

    He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, arXiv:1512.03385.

    Args:
        branches: Architectures whose values are added.
    """

    branches: tuple[Architecture, ...]

    def __init__(self, *branches: Architecture, name: str | None = None) -> None:
        self.__attrs_init__(branches, name=name)

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the sum; raises SigmaNetworkError if the shapes differ, because Add does not broadcast."""
        shapes = [x.shape[1:] for x in inputs]
        if len(set(shapes)) > 1:
            raise SigmaNetworkError(
                f"add({', '.join(map(str, shapes))}): the shapes differ. Use Dense or Reshape before."
            )
        return reduce(add, inputs)
