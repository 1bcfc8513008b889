"""A trained gate."""

from collections.abc import Mapping

from attrs import define

from sigma_kernel import Context, Layer, Parameter, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Gate(Layer):
    """Return ``strength * x * softsign(x * scale)``, with one trained scale for each feature.

    Args:
        strength: Factor on the result.
    """

    strength: float = live(1.0, low=0.0)

    def parameters(self, *inputs: Spec) -> Mapping[str, Parameter]:
        """Return the scale of each feature."""
        return {"scale": Parameter(inputs[0].shape[-1:], initialiser=1.0)}

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the gated input, of its shape."""
        x = inputs[0]
        opening = context.resolve("op", "acme-sigma:softsign")(x * context.parameters["scale"])
        return context.live["strength"] * x * opening
