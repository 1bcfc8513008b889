"""A network as one layer."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel.contracts import Architecture, Context, Layer
from sigma_kernel.graph import Node
from sigma_layers.settings import architecture


@define(eq=False)
class Subnetwork(Layer):
    """Run a chain as one layer: ``Subnetwork(Dense(8, name="first") + Dense(4), name="head")``.

    The chain may have branches; each of its layers without a source takes the inputs of the subnetwork.  Addresses are
    below its own, such as ``head.first.weights``, and ``Pick("first")`` after it reads the value of an inner layer.

    Shapes: those of the chain.

    Args:
        chain: Layers to run; inputs, outputs and costs stay outside.
    """

    chain: Architecture = field(validator=architecture)

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the value of the last layer."""
        return context.run("", self.chain, *inputs)
