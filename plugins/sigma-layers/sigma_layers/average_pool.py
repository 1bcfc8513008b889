"""Average pooling over windows, channels first."""

from __future__ import annotations

from math import prod
from typing import Any

from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.pooling import counted, places, pooled
from sigma_layers.settings import flag
from sigma_layers.windows import Padding, Sides, padding, sides


@define(eq=False)
class AveragePool(Layer):
    """Average over windows of each channel: ``AveragePool(2)``.

    Padding counts as zeros, the default of ``torch.nn.AvgPool2d``; with ``count_padding=False`` it does not count, and
    a mean is over the elements that there are, as in Keras.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming
    ``(n + 2 * padding - size) // stride + 1``.

    Args:
        size: Sides of a window: one for all spatial dimensions, or one for each.
        stride: Distances between windows, likewise; by default the size.
        padding: Zeros before and after each side, likewise; ``"same"`` keeps sides at a stride of 1.
        count_padding: Whether means are over all elements of a window, padding included.
    """

    size: Sides = field(default=2, validator=sides)
    stride: Sides | None = field(default=None, validator=optional(sides))
    padding: Padding = field(default=0, validator=padding)
    count_padding: bool = field(default=True, validator=flag)

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride and padding for a sample; raises SigmaNetworkError if they do not fit its shape."""
        how = pooled("average_pool", shape, self.size, self.stride, self.padding)
        del how["dilation"]
        return how

    def forward(self, context: Context, x: Node) -> Node:
        """Return the means."""
        how = self.window(x.shape[1:])
        total = f.sum_pool(x, **how)
        if self.count_padding or not any(map(any, how["padding"])):
            return total / float(prod(how["window"]))
        return total / counted(x.shape, [places(*one) for one in zip(x.shape[2:], *how.values(), strict=True)])
