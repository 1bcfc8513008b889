"""Fully connected layer, with an activation."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers.settings import ACTIVATION, activation, call_function, count, flag


@define(eq=False)
class Dense(Layer):
    """Compute ``activation(x @ weights + biases)`` on the last axis: ``Dense(100, activation="relu")``.

    Weights are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, ..., features)`` -> ``(batch, ..., units)``; weights ``(features, units)``, biases ``(units,)``.

    Rosenblatt, The Perceptron, 1958; same as ``torch.nn.Linear``, whose weights are transposed, and an activation.

    Args:
        units: Number of outputs of each row.
        activation: Activation function of the sums: its name, or a function of a node.
        bias: Whether biases are added.
    """

    units: int = field(validator=count)
    activation: str | Callable[[Node], Node] = field(default="identity", validator=activation, metadata=ACTIVATION)
    bias: bool = field(default=True, validator=flag)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return weights and biases; raises SigmaNetworkError if a sample is a single number."""
        if not x.shape:
            raise SigmaNetworkError("dense: a sample is a single number, without features. Put Reshape(1) before it.")
        weights = Parameter((x.shape[-1], self.units), "glorot_uniform")
        return {"weights": weights, "biases": Parameter((self.units,))} if self.bias else {"weights": weights}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the activation of the weighted sums."""
        sums = x @ context.parameters["weights"]
        sums = sums + context.parameters["biases"] if self.bias else sums
        activation: Callable[[Node], Node] = context.resolve("activation", self.activation)
        return call_function(activation, sums)
