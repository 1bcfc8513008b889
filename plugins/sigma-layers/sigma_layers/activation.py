"""Activation layer: apply an activation function elementwise."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.settings import ACTIVATION, activation, call_function


@define(eq=False)
class Activation(Layer):
    """Apply an activation function: ``Activation("relu")``, or ``Activation(f.relu)`` with a function of a node.

    ``sigma components activation`` lists the names.

    Shapes: ``(batch, ...)`` -> the same.

    Same as ``keras.layers.Activation``.

    Args:
        function: Name of the activation function, or a function of a node.
    """

    function: str | Callable[[Node], Node] = field(validator=activation, metadata=ACTIVATION)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the function's value."""
        function: Callable[[Node], Node] = context.resolve("activation", self.function)
        return call_function(function, x)
