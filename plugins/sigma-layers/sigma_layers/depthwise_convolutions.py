"""The base of depthwise convolutions of every rank."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sigma_kernel.graph import Node
from sigma_layers.convolutions import Convolving
from sigma_layers.settings import ACTIVATION, activation, count, flag
from sigma_layers.windows import Padding, Sides, padding, sides


@define(eq=False)
class DepthwiseConvolution(Convolving):
    """Convolve each channel with filters of its own.

    Args:
        size: Sides of a filter: one number, or one for each side.
        stride: Distances between windows, likewise.
        padding: Zeros before and after each side, likewise; ``"same"`` gives ``ceil(n / stride)``.
        activation: Activation function of the sums: its name, or a function of a node.
        bias: Whether biases are added.
        dilation: Distances between the elements of a window, likewise.
        multiplier: Number of filters for each channel.
    """

    size: Sides = field(default=3, validator=sides)
    stride: Sides = field(default=1, validator=sides)
    padding: Padding = field(default=0, validator=padding)
    activation: str | Callable[[Node], Node] = field(default="identity", validator=activation, metadata=ACTIVATION)
    bias: bool = field(default=True, validator=flag)
    dilation: Sides = field(default=1, validator=sides)
    multiplier: int = field(default=1, validator=count)

    def filters_and_groups(self, channels: int) -> tuple[int, int]:
        """Return ``multiplier`` filters for each channel, and a group for each channel."""
        return channels * self.multiplier, channels
