"""Reorder the axes of each sample."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, deep_iterable
from sigma_layers.settings import check_separate_sides, count


@define(eq=False, init=False)
class Permute(Layer):
    """Reorder the axes of each sample: ``Permute(2, 1)`` turns ``(time, features)`` into ``(features, time)``.

    Shapes: ``(batch, ...)`` -> ``(batch, ...)``, side k being side ``axes[k]`` before.

    Same as ``keras.layers.Permute``.

    Args:
        axes: The axes of the input in their new order, each once, counted from 1; the batch is axis 0 and stays.
    """

    axes: tuple[int, ...] = field(validator=and_(check_separate_sides, deep_iterable(count)))

    def __init__(self, *axes: int, name: str | None = None) -> None:
        self.__attrs_init__(axes, name=name)

    def forward(self, context: Context, x: Node) -> Node:
        """Return x in the new order; raises SigmaNetworkError unless each axis is named once."""
        if sorted(self.axes) != list(range(1, len(x.shape))):
            own = ", ".join(map(str, range(len(x.shape) - 1, 0, -1)))
            raise SigmaNetworkError(
                f"permute({x.shape[1:]}): axes {self.axes} must name each of its {len(x.shape) - 1} axes once, from 1 "
                f"on, as in Permute({own})."
            )
        return f.permute(x, (0, *self.axes))
