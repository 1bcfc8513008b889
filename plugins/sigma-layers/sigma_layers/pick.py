"""Another output of a layer."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel.contracts import Context, Layer
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import must

named = must(lambda value: isinstance(value, str) and bool(value), "the name of an output", SigmaNetworkError)


@define(eq=False)
class Pick(Layer):
    """Read another output of the layer before it, by name: ``Attention(4) + Pick("weights")``.

    Of a layer that owns others, such as ``Subnetwork``, the value of each of them is an output as well.

    Shapes: those of that output.

    Args:
        output: Name of the output, as the documentation of the layer gives it, or the address of an inner layer.
    """

    output: str = field(validator=named)

    @property
    def reads(self) -> str:
        """Return the name of the output."""
        return self.output

    def forward(self, context: Context, x: Node) -> Node:
        """Return that output."""
        return x
