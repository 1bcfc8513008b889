"""Elementwise maximum of branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.graph import Node
from sigma_layers.merging import Merging


@define(eq=False, init=False)
class Maximum(Merging):
    """Take the maximum of the layer before this one and branches: ``left + Maximum(right)``.

    Equal maxima share the gradient evenly.

    Shapes: any number of equal ``(batch, ...)`` -> the same.  There is no broadcasting.

    Goodfellow, Warde-Farley, Mirza, Courville and Bengio, Maxout Networks, arXiv:1302.4389.

    Args:
        branches: Architectures whose values are compared.
    """

    called: ClassVar[str] = "maximum"

    def merge(self, inputs: Sequence[Node]) -> Node:
        """Return the maximum."""
        return f.max(f.stack(*inputs, axis=1), 1)
