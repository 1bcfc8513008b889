"""A layer made of a graph function of your own."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph.node import Node
from sigma_layers.settings import applied, function


@define(eq=False)
class Function(Layer):
    """Return a function of what leads to it: ``Function(lambda x: f.sin(x))``, with ``sigma_kernel.graph.functions``.

    It takes one node for each layer that leads to it.  The text form has no place for it: a function that a
    configuration shall name belongs into a plugin.

    Shapes: any number of ``(batch, ...)`` -> ``(batch, ...)``.
    """

    function: Callable[..., Node] = field(validator=function)

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the function's value."""
        return applied(self.function, *inputs)
