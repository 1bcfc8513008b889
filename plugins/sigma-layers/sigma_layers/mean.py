"""Elementwise mean of branches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar

from attrs import define

from sigma_kernel.graph import Node
from sigma_layers.merging import Merging


@define(eq=False, init=False)
class Mean(Merging):
    """Average the layer before this one and branches: ``left + Mean(right)``.

    Shapes: any number of equal ``(batch, ...)`` -> the same.  There is no broadcasting.

    Same as ``keras.layers.Average``.

    Args:
        branches: Architectures whose values are averaged.
    """

    called: ClassVar[str] = "mean"

    def merge(self, inputs: Sequence[Node]) -> Node:
        """Return the mean."""
        return reduce(add, inputs) / float(len(inputs))
