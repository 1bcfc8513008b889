"""Multiply each feature by a trained number."""

from collections.abc import Mapping

from attrs import define

from sigma_kernel import Context, Layer, Node, Parameter, Spec


@define(eq=False)
class Stretch(Layer):
    """Multiply each feature by a trained number."""

    def parameters(self, *inputs: Spec) -> Mapping[str, Parameter]:
        """Return the factors, one for each feature."""
        return {"factors": Parameter(inputs[0].shape[-1:], initialiser=1.0)}

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the products, of the input's shape."""
        return inputs[0] * context.parameters["factors"]
