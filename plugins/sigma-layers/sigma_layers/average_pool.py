"""Average pooling over windows, channels first."""

from __future__ import annotations

from math import prod
from typing import Any

from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.max_pool import pooled
from sigma_layers.windows import Padding, Sides, padding, sides


@define(eq=False)
class AveragePool(Layer):
    """Average over windows of each channel: ``AveragePool(2)``.

    Padding counts as zeros, the default of ``torch.nn.AvgPool2d``.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming
    ``(n + 2 * padding - size) // stride + 1``.

    Args:
        size: Sides of a window: one for all spatial dimensions, or one for each.
        stride: Distances between windows, likewise; by default the size.
        padding: Zeros before and after each side, likewise; ``"same"`` keeps sides at a stride of 1.
    """

    size: Sides = field(default=2, validator=sides)
    stride: Sides | None = field(default=None, validator=optional(sides))
    padding: Padding = field(default=0, validator=padding)

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride and padding for a sample; raises SigmaNetworkError if they do not fit its shape."""
        return pooled("average_pool", shape, self.size, self.stride, self.padding)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the means."""
        how = self.window(x.shape[1:])
        return f.sum_pool(x, **how) / float(prod(how["window"]))
