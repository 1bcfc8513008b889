"""Sinusoidal positions: add sines and cosines of the position to each vector of a sequence."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_kernel.settings import gt
from sigma_layers.positions import angles, by_position, check_sequence, length_of


@define(eq=False)
class SinusoidalPositions(Layer):
    """Add fixed positions to a sequence: ``Embedding(1000, 64) + SinusoidalPositions()``.

    To features 2i and 2i + 1 of position t it adds the sine and the cosine of ``t / base**(2i / features)``.

    Shapes: ``(batch, time, features)`` -> the same.

    Vaswani et al., Attention Is All You Need, arXiv:1706.03762.

    Args:
        base: Base of the geometric series of wavelengths.
    """

    base: float = field(default=10000.0, validator=gt(0))

    def forward(self, context: Context, x: Node) -> Node:
        """Return the sum; raises SigmaNetworkError unless a sample is a sequence."""
        check_sequence("sinusoidal_positions", x.shape[1:])
        count, features = x.shape[1:]
        turns = angles(length_of(context, count), features, self.base)
        table = np.stack([np.sin(turns), np.cos(turns)], axis=-1).reshape(len(turns), -1)[:, :features]
        return x + by_position(context, f.constant(table, x.dtype), count)
