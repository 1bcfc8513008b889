"""2-D convolution over images, channels first."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import prod
from typing import Any

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers.settings import ACTIVATION, activation, applied, count
from sigma_layers.windows import Padding, Sides, padding, sides, window


@define(eq=False)
class Conv2d(Layer):
    """Convolve images with filters: ``Conv2d(32, 3, padding="same", activation="relu")``.

    Computes ``activation(weights * x + biases)``, where ``*`` is a cross-correlation, as in other frameworks. Weights
    are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, channels, height, width)`` -> ``(batch, filters, height', width')``, each n becoming
    ``(n + 2 * padding - size) // stride + 1``; weights ``(filters, channels, *size)``, biases ``(filters,)``.

    LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998.

    Args:
        filters: Number of filters, which are the channels of the output.
        size: Sides of a filter: one number, or ``(height, width)``.
        stride: Distances between windows, likewise.
        padding: Zeros before and after each side, likewise; ``"same"`` keeps height and width at a stride of 1.
        activation: Activation function of the sums: its name, or a function of a node.
        bias: Whether biases are added.
    """

    filters: int = field(validator=count)
    size: Sides = field(default=3, validator=sides)
    stride: Sides = field(default=1, validator=sides)
    padding: Padding = field(default=0, validator=padding)
    activation: str | Callable[[Node], Node] = field(default="identity", validator=activation, metadata=ACTIVATION)
    bias: bool = True

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride and padding for a sample; raises SigmaNetworkError if they do not fit its shape."""
        if len(shape) != 3:
            remedy = f"Reshape(1, {shape[0]}, {shape[1]})" if len(shape) == 2 else "Reshape(channels, height, width)"
            raise SigmaNetworkError(
                f"conv2d({shape}): a sample must be an image, (channels, height, width). Put {remedy} before it."
            )
        return window("conv2d", shape, self.size, self.stride, self.padding)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return weights and biases; raises SigmaNetworkError if a sample is not an image, or too small."""
        covered = self.window(x.shape)["window"]
        fan_in, fan_out = x.shape[0] * prod(covered), self.filters * prod(covered)
        weights = Parameter((self.filters, x.shape[0], *covered), "glorot_uniform", fan_in, fan_out)
        return {"weights": weights, "biases": Parameter((self.filters,))} if self.bias else {"weights": weights}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the activation of the weighted sums."""
        _warn_of_channels_last(context.address, x)
        how = self.window(x.shape[1:])
        sums = f.convolution(x, context.parameters["weights"], how["stride"], how["padding"])
        if self.bias:
            sums = sums + f.reshape(context.parameters["biases"], (self.filters, 1, 1))
        activation: Callable[[Node], Node] = context.resolve("activation", self.activation)
        return applied(activation, sums)


def _warn_of_channels_last(address: str, images: Node) -> None:
    """Warn if images of the data have one or three columns only: those may be the channels."""
    first, rows, last = images.shape[1:]
    while images.op in ("reshape", "cast"):
        images = images.inputs[0]
    if images.op == "input" and last in (1, 3) and min(first, rows) > last:
        warnings.warn(
            f"{address}: its images seem to be (height, width, channels), and the first axis is taken for {first} "
            f"channels. Transpose the data to ({last}, {first}, {rows}): x.transpose(0, 3, 1, 2).",
            stacklevel=2,
        )
