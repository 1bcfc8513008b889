"""Average pooling to given sides."""

from __future__ import annotations

from math import prod

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.pooling import adaptive_sides, even_windows, unfold_windows, window_counts, window_entries
from sigma_layers.windows import Sides, sides


@define(eq=False)
class AdaptiveAveragePool(Layer):
    """Average over windows that cover each channel evenly: ``AdaptiveAveragePool(7)``.

    Of a side of n, window i of m begins at ``floor(i * n / m)`` and ends before ``ceil((i + 1) * n / m)``.

    Shapes: ``(batch, channels, *spatial)`` -> ``(batch, channels, *size)``, for samples of any sides.

    Same as ``torch.nn.AdaptiveAvgPool2d``, for any number of sides.

    Args:
        size: Sides of the output: one for all spatial dimensions, or one for each.
    """

    size: Sides = field(validator=sides)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the means; raises SigmaNetworkError if a sample has other sides."""
        size = adaptive_sides("adaptive_average_pool", x.shape[1:], self.size)
        if window := even_windows(x.shape[2:], size):
            return f.sum_pool(x, window) / float(prod(window))
        entries = [window_entries(*pair) for pair in zip(x.shape[2:], size, strict=True)]
        return f.sum_pool(unfold_windows(x, entries, 0.0), [at.shape[1] for at in entries]) / window_counts(
            x.shape, entries
        )
