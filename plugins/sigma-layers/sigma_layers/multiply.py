"""Elementwise product of branches, as in gates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import ClassVar

from attrs import define

from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.merging import Merging


@define(eq=False, init=False)
class Multiply(Merging):
    """Multiply the layer before this one by branches: ``features + Multiply(gate)``.

    A side of 1 is stretched, so that a gate ``(channels, 1, 1)`` scales the channels of an image.

    Shapes: any number of ``(batch, ...)`` of one rank, whose sides are equal or 1 -> the larger sides.

    Hu, Shen, Albanie, Sun and Wu, Squeeze-and-Excitation Networks, arXiv:1709.01507.

    Args:
        branches: Architectures whose values are multiplied.
    """

    called: ClassVar[str] = "multiply"

    def check(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise SigmaNetworkError unless the ranks are equal, and the sides equal or 1."""
        if len({len(shape) for shape in shapes}) > 1 or any(
            len({*sides} - {1}) > 1 for sides in zip(*shapes, strict=False)
        ):
            raise SigmaNetworkError(
                f"multiply({', '.join(map(str, shapes))}): the sides must be equal or 1, and as many. "
                "Use Dense or Reshape before."
            )

    def merge(self, inputs: Sequence[Node]) -> Node:
        """Return the product."""
        return reduce(mul, inputs)
