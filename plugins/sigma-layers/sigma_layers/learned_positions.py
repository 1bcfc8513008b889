"""Learned positions: add a trained vector for its position to each vector of a sequence."""

from __future__ import annotations

from attrs import define, field
from attrs.validators import optional

from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers.embedding import NormalVectors
from sigma_layers.positions import by_position, check_sequence
from sigma_layers.settings import count


@define(eq=False)
class LearnedPositions(Layer):
    """Add trained positions to a sequence: ``Embedding(1000, 64) + LearnedPositions()``.

    Vectors begin as standard normal numbers, like those of ``Embedding``.

    Shapes: ``(batch, time, features)`` -> the same; weights ``(length, features)``.

    Gehring, Auli, Grangier, Yarats and Dauphin, Convolutional Sequence to Sequence Learning, arXiv:1705.03122.

    Args:
        length: Number of positions that have a vector; by default as many as the input has.
    """

    length: int | None = field(default=None, validator=optional(count))

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return the vectors; raises SigmaNetworkError unless a sample is a sequence that is not too long."""
        check_sequence("learned_positions", x.shape)
        if self.length is not None and x.shape[0] > self.length:
            raise SigmaNetworkError(
                f"learned_positions({x.shape}): a sequence of {x.shape[0]} exceeds {self.length} positions. "
                "Choose a greater length."
            )
        return {"weights": Parameter((self.length or x.shape[0], x.shape[1]), NormalVectors())}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the sum."""
        return x + by_position(context, context.parameters["weights"], x.shape[1])
