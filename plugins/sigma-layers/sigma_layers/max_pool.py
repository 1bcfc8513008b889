"""Max pooling over windows, channels first."""

from __future__ import annotations

from typing import Any

from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.pooling import places, unfold_windows, window_settings
from sigma_layers.settings import flag
from sigma_layers.windows import Padding, Sides, padding, sides


@define(eq=False)
class MaxPool(Layer):
    """Take the maximum over windows of each channel: ``MaxPool(2)``.

    Padding never is the maximum. The first of equal maxima gets the gradient.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming
    ``(n + 2 * padding - dilation * (size - 1) - 1) // stride + 1``; with ``ceil_mode``, the quotient is rounded up,
    unless the last window would begin in the padding after the side.

    Same as ``torch.nn.MaxPool1d``, ``MaxPool2d`` and ``MaxPool3d``.

    Args:
        size: Sides of a window: one for all spatial dimensions, or one for each.
        stride: Distances between windows, likewise; by default the size.
        padding: Elements before and after each side, likewise; ``"same"`` keeps sides at a stride of 1.
        dilation: Distances between the elements of a window, likewise.
        ceil_mode: Whether a last window that lies partly beyond the padding is kept.
    """

    size: Sides = field(default=2, validator=sides)
    stride: Sides | None = field(default=None, validator=optional(sides))
    padding: Padding = field(default=0, validator=padding)
    dilation: Sides = field(default=1, validator=sides)
    ceil_mode: bool = field(default=False, validator=flag)

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride, padding and dilation for a sample; SigmaNetworkError if they do not fit its shape."""
        return window_settings("max_pool", shape, self.size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the maxima."""
        how = self.window(x.shape[1:])
        if max(how["dilation"]) > 1:
            entries = [places(*axis) for axis in zip(x.shape[2:], *how.values(), strict=True)]
            return f.max_pool(unfold_windows(x, entries, -float("inf")), how["window"])
        del how["dilation"]
        return f.max_pool(x, **how)
