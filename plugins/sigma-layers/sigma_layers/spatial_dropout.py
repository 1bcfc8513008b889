"""Spatial dropout: zero whole channels at random during training."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, live
from sigma_kernel.graph import Node
from sigma_layers.axes import place
from sigma_layers.settings import whole


@define(eq=False)
class SpatialDropout(Layer):
    """Zero each channel with probability ``rate`` during training: ``SpatialDropout(0.2)``.  The rate can be set live.

    The others are divided by ``1 - rate``, which keeps the expected value.
    Outside training, the layer is the identity.

    Shapes: ``(batch, channels, *spatial)`` -> the same.

    Tompson, Goroshin, Jain, LeCun and Bregler, Efficient Object Localization Using Convolutional Networks,
    arXiv:1411.4280.

    Args:
        rate: Probability of zeroing a channel.
        axis: Axis of the channels; the batch is axis 0. For sequences ``(time, features)`` use -1.
    """

    rate: float = live(0.5, low=0.0, below=1.0)
    axis: int = field(default=1, validator=whole)

    def forward(self, context: Context, x: Node) -> Node:
        """Return x with channels dropped, or x itself outside training."""
        at = place("spatial_dropout", x.shape[1:], self.axis)
        if not context.training or context.key is None:
            return x
        sides = (side if k in (0, at) else 1 for k, side in enumerate(x.shape))
        return x * context.key.dropout(f.ones(tuple(sides), x.dtype), context.live["rate"])
