"""Elementwise sum of branches, as in residual connections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar

from attrs import define

from sigma_kernel.graph import Node
from sigma_layers.merging import Merging


@define(eq=False, init=False)
class Add(Merging):
    """Add branches to the layer before this one: ``trunk + Dense(8) + Add(trunk)``.

    Shapes: any number of equal ``(batch, ...)`` -> the same.  There is no broadcasting.

    He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, arXiv:1512.03385.

    Args:
        branches: Architectures whose values are added.
    """

    called: ClassVar[str] = "add"

    def merge(self, inputs: Sequence[Node]) -> Node:
        """Return the sum."""
        return reduce(add, inputs)
