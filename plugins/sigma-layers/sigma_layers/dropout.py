"""Dropout: zero elements at random during training."""

from __future__ import annotations

from attrs import define

from sigma_kernel.contracts import Context, Layer, live
from sigma_kernel.graph import Node


@define(eq=False)
class Dropout(Layer):
    """Zero each element with probability ``rate`` during training: ``Dropout(0.4)``.  The rate can be set live.

    The others are divided by ``1 - rate``, which keeps the expected value (inverted dropout).  Outside training, the
    layer is the identity.

    Shapes: ``(batch, ...)`` -> the same.

    Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, Dropout: A Simple Way to Prevent Neural Networks from
    Overfitting, 2014.

    Args:
        rate: Probability of zeroing an element.
    """

    rate: float = live(0.5, low=0.0, below=1.0)

    def forward(self, context: Context, x: Node) -> Node:
        """Return x with elements dropped, or x itself outside training."""
        return context.key.dropout(x, context.live["rate"]) if context.training and context.key else x
