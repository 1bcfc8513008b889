"""Max pooling over windows, channels first."""

from __future__ import annotations

from typing import Any

from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.windows import Padding, Sides, padding, sides, window


@define(eq=False)
class MaxPool(Layer):
    """Take the maximum over windows of each channel: ``MaxPool(2)``.

    Padding never is the maximum.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming
    ``(n + 2 * padding - size) // stride + 1``.

    Args:
        size: Sides of a window: one for all spatial dimensions, or one for each.
        stride: Distances between windows, likewise; by default the size.
        padding: Elements before and after each side, likewise; ``"same"`` keeps sides at a stride of 1.
    """

    size: Sides = field(default=2, validator=sides)
    stride: Sides | None = field(default=None, validator=optional(sides))
    padding: Padding = field(default=0, validator=padding)

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride and padding for a sample; raises SigmaNetworkError if they do not fit its shape."""
        return pooled("max_pool", shape, self.size, self.stride, self.padding)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the maxima."""
        return f.max_pool(x, **self.window(x.shape[1:]))


def pooled(where: str, shape: tuple[int, ...], size: Sides, stride: Sides | None, around: Padding) -> dict[str, Any]:
    """Return window, stride and padding; raises SigmaNetworkError if windows do not fit, or could hold padding only."""
    if len(shape) < 2:
        remedy = f"Put Reshape(1, {shape[0]}) before it." if shape else "Leave it out."
        raise SigmaNetworkError(f"{where}({shape}): a sample must have channels and sides to pool. {remedy}")
    how = window(where, shape, size, size if stride is None else stride, around)
    del how["dilation"]
    if any(max(pair) >= span for pair, span in zip(how["padding"], how["window"], strict=True)):
        raise SigmaNetworkError(
            f"{where}({shape}): windows of {how['window']} with padding {around!r} could hold padding only. "
            "Use less padding."
        )
    return how
