"""Gaussian noise, added during training."""

from __future__ import annotations

from attrs import define

from sigma_kernel.contracts import Context, Layer, live
from sigma_kernel.graph import Node


@define(eq=False)
class GaussianNoise(Layer):
    """Add normal numbers of mean 0 during training: ``GaussianNoise(0.1)``.  The deviation can be set live.

    Outside training, the layer is the identity.

    Shapes: ``(batch, ...)`` -> the same.

    Bishop, Training with Noise is Equivalent to Tikhonov Regularization, 1995.

    Args:
        deviation: Standard deviation of the numbers.
    """

    deviation: float = live(0.1, low=0.0)

    def forward(self, context: Context, x: Node) -> Node:
        """Return x with noise, or x itself outside training."""
        if not context.training or context.key is None:
            return x
        return x + context.key.normal(x.shape, 0.0, context.live["deviation"], dtype=x.dtype)
