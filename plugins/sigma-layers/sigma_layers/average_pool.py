"""Average pooling over windows, channels first."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from attrs import define, field
from attrs.validators import optional

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.pooling import places, window_counts, window_settings
from sigma_layers.settings import flag
from sigma_layers.windows import Padding, Sides, padding, sides


@define(eq=False)
class AveragePool(Layer):
    """Average over windows of each channel: ``AveragePool(2)``.

    Padding counts as zeros, the default of ``torch.nn.AvgPool2d``; with ``count_padding=False`` it does not count, and
    a mean is over the elements that there are, as in Keras.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *spatial')``, each n becoming
    ``(n + 2 * padding - size) // stride + 1``; with ``ceil_mode``, the quotient is rounded up, unless the last window
    would begin in the padding after the side. What lies beyond the padding never counts.

    Same as ``torch.nn.AvgPool1d``, ``AvgPool2d`` and ``AvgPool3d``.

    Args:
        size: Sides of a window: one for all spatial dimensions, or one for each.
        stride: Distances between windows, likewise; by default the size.
        padding: Zeros before and after each side, likewise; ``"same"`` keeps sides at a stride of 1.
        count_padding: Whether means are over all elements of a window, padding included.
        ceil_mode: Whether a last window that lies partly beyond the padding is kept.
    """

    size: Sides = field(default=2, validator=sides)
    stride: Sides | None = field(default=None, validator=optional(sides))
    padding: Padding = field(default=0, validator=padding)
    count_padding: bool = field(default=True, validator=flag)
    ceil_mode: bool = field(default=False, validator=flag)

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride and padding for a sample; raises SigmaNetworkError if they do not fit its shape."""
        how = window_settings("average_pool", shape, self.size, self.stride, self.padding, ceil_mode=self.ceil_mode)
        del how["dilation"]
        return how

    def forward(self, context: Context, x: Node) -> Node:
        """Return the means."""
        how = self.window(x.shape[1:])
        total, elements, counts = f.sum_pool(x, **how), prod(how["window"]), self.counts(x.shape, how)
        return total / (float(elements) if (counts == elements).all() else counts)

    def counts(self, shape: tuple[int, ...], how: dict[str, Any]) -> np.ndarray:
        """Return the number of elements that each mean is over, ``(1, 1, *windows)``."""
        sides, pairs = shape[2:], how["padding"]
        if self.count_padding:  # as if it were data; elements beyond the padding are not
            beyond = [0 if self.padding == "same" else after - before for before, after in pairs]
            sides = tuple(n + sum(pair) - more for n, pair, more in zip(sides, pairs, beyond, strict=True))
            pairs = tuple((0, more) for more in beyond)
        entries = [places(*axis) for axis in zip(sides, how["window"], how["stride"], pairs, strict=True)]
        return window_counts((*shape[:2], *sides), entries)
