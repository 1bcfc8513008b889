"""The base of layers that merge branches elementwise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from attrs import define

from sigma_kernel.contracts import Architecture, Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node


@define(eq=False, init=False)
class Merging(Layer):
    """Merge the layer before this one and branches, whose shapes are equal.

    Args:
        branches: Architectures whose values are merged.
    """

    branches: tuple[Architecture, ...]

    called: ClassVar[str]

    def __init__(self, *branches: Architecture, name: str | None = None) -> None:
        self.__attrs_init__(branches, name=name)

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the merged values; raises SigmaNetworkError if shapes do not fit."""
        self.check([x.shape[1:] for x in inputs])
        return self.merge(inputs)

    def check(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise SigmaNetworkError unless the shapes are equal: there is no broadcasting."""
        if len(set(shapes)) > 1:
            raise SigmaNetworkError(
                f"{self.called}({', '.join(map(str, shapes))}): the shapes differ. Use Dense or Reshape before."
            )

    @abstractmethod
    def merge(self, inputs: Sequence[Node]) -> Node:
        """Return one value for all inputs."""
