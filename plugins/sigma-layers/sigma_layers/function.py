"""Layer from your own graph function."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.settings import call_function, function


@define(eq=False)
class Function(Layer):
    """Apply your own function: ``Function(lambda x: f.sin(x))``, ``f`` being ``sigma_kernel.functions``.

    The function takes one node for each input of the layer.  In a configuration, it is a function of a module:
    ``function({"python": "package.module:function"})``.

    Shapes: any number of ``(batch, ...)`` -> ``(batch, ...)``.

    Args:
        function: Function of one node for each input of the layer that returns a node.
    """

    function: Callable[..., Node] = field(validator=function)

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the function's value."""
        return call_function(self.function, *inputs)
