"""Add an axis of side 1 to each sample."""

from __future__ import annotations

from typing import ClassVar

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.settings import whole


@define(eq=False)
class Expand(Layer):
    """Add an axis of side 1 to each sample: ``Input(None, None) + Expand()`` gives images of one channel.

    Shapes: ``(batch, *shape)`` -> ``(batch, 1, *shape)``, or with the new axis elsewhere.

    Same as ``torch.unsqueeze``.

    Args:
        axis: Place of the new axis; the batch is axis 0. -1 is the last place.
    """

    reshapes: ClassVar[bool] = True
    axis: int = field(default=1, validator=whole)

    def forward(self, context: Context, x: Node) -> Node:
        """Return x with the axis; raises SigmaNetworkError if it cannot be there."""
        rank = len(x.shape)
        if self.axis == 0 or not -rank <= self.axis <= rank:
            raise SigmaNetworkError(
                f"expand({x.shape[1:]}): axis {self.axis} cannot be the new axis. Use 1 to {rank}, or -1 for the last."
            )
        return f.expand(x, self.axis)
