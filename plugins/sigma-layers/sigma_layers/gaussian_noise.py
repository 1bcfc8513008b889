"""Gaussian noise, added during training."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel.contracts import Context, Layer, live
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_


@define(eq=False)
class GaussianNoise(Layer):
    """Add Gaussian noise with mean 0 during training: ``GaussianNoise(0.1)``.  The deviation can be set live.

    With ``replace``, the noise replaces the input: a generator is trained on new noise in each iteration, and evaluated
    on its input.  Outside training, the layer is the identity.

    Shapes: ``(batch, ...)`` -> the same.

    Bishop, Training with Noise is Equivalent to Tikhonov Regularization, 1995.

    Args:
        deviation: Standard deviation of the noise.
        replace: Whether the noise replaces the input during training.
    """

    deviation: float = live(0.1, low=0.0)
    replace: bool = field(default=False, validator=in_((False, True)))

    def forward(self, context: Context, x: Node) -> Node:
        """Return x with noise, or noise alone; x itself outside training."""
        if not context.training or context.key is None:
            return x
        noise = context.key.normal(x.shape, 0.0, context.live["deviation"], dtype=x.dtype)
        return noise if self.replace else x + noise
