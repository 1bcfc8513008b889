"""Reshape each sample."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, deep_iterable
from sigma_layers.settings import check_separate_sides, count


@define(eq=False, init=False)
class Reshape(Layer):
    """Reshape each sample: ``Reshape(28, 28)``, ``Reshape()`` for a single number.

    Shapes: ``(batch, ...)`` -> ``(batch, *shape)``, with as many elements.

    Same as ``keras.layers.Reshape``.

    Args:
        shape: New shape of one sample, without the batch.
    """

    reshapes: ClassVar[bool] = True
    shape: tuple[int, ...] = field(validator=and_(check_separate_sides, deep_iterable(count)))

    def __init__(self, *shape: int, name: str | None = None) -> None:
        self.__attrs_init__(shape, name=name)

    def forward(self, context: Context, x: Node) -> Node:
        """Return x in the new shape; raises SigmaNetworkError if the numbers of elements differ."""
        own = x.shape[1:]
        if prod(own) != prod(self.shape):
            raise SigmaNetworkError(
                f"reshape({own}): its {prod(own)} elements do not fit {self.shape}, which holds {prod(self.shape)}. "
                "Use sides whose product is the same, or Flatten()."
            )
        return f.reshape(x, (x.shape[0], *self.shape))
