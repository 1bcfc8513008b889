"""Mean of each channel."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.pooling import check
from sigma_layers.settings import flag


@define(eq=False)
class GlobalAveragePool(Layer):
    """Average each channel: ``GlobalAveragePool()``.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels)``, or ``(batch, channels, 1, ...)`` with
    ``keepdims``.

    Lin, Chen and Yan, Network In Network, arXiv:1312.4400.

    Args:
        keepdims: Whether the sides are kept, as 1.
    """

    keepdims: bool = field(default=False, validator=flag)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the means; raises SigmaNetworkError if a sample has no sides."""
        check("global_average_pool", x.shape[1:])
        return f.mean(x, range(2, len(x.shape)), keepdims=self.keepdims)
