"""Residual connection: add the input of a chain to its output."""

from __future__ import annotations

from attrs import define, field
from attrs.validators import optional

from sigma_kernel.contracts import Architecture, Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.settings import architecture


@define(eq=False)
class Residual(Layer):
    """Return ``x + chain(x)``: ``Residual(Dense(8, activation="relu") + Dense(8))``.

    With a projection, ``projection(x) + chain(x)``, for chains that change the shape.  Addresses of inner parameters
    begin with ``body`` and ``projection``.  Further inputs go to the chain alone.

    Shapes: ``(batch, ...)`` -> the same, or that of the chain.  There is no broadcasting.

    He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, arXiv:1512.03385.

    Args:
        chain: Layers whose value is added to their input.
        projection: Layers that give the input the shape of the chain's value, such as ``Dense(8)``; by default none.
    """

    chain: Architecture = field(validator=architecture)
    projection: Architecture | None = field(default=None, validator=optional(architecture))

    def forward(self, context: Context, x: Node, *others: Node) -> Node:
        """Return the sum; raises SigmaNetworkError if the shapes differ."""
        value = context.run("body", self.chain, x, *others)
        way = x if self.projection is None else context.run("projection", self.projection, x)
        if way.shape != value.shape:
            raise SigmaNetworkError(
                f"residual({x.shape[1:]}): {way.shape[1:]} and {value.shape[1:]}, the chain's output, cannot be "
                "added. Let its last layer keep the shape, or give projection=, such as a dense layer."
            )
        return way + value
