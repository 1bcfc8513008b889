"""The base of convolutions of every rank: settings, parameters and checks of a sample's shape."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from math import prod
from typing import Any, ClassVar

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers.settings import ACTIVATION, activation, call_function, count, flag
from sigma_layers.windows import Padding, Sides, padding, sides, window

_SAMPLES = {  # by rank: the word for a sample, for several, and its axes
    1: ("a signal", "signals", ("length",)),
    2: ("an image", "images", ("height", "width")),
    3: ("a volume", "volumes", ("depth", "height", "width")),
}


class Sliding(Layer):
    """A layer that slides filters over samples ``(channels, *spatial)`` and adds biases."""

    __slots__ = ()

    rank: ClassVar[int]
    called: ClassVar[str]

    size: Sides
    stride: Sides
    padding: Padding
    activation: str | Callable[[Node], Node]
    bias: bool
    dilation: Sides

    @abstractmethod
    def filters_and_groups(self, channels: int) -> tuple[int, int]:
        """Return the number of filters, and of groups, for so many channels."""

    @abstractmethod
    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride, padding and dilation for a sample; SigmaNetworkError if they do not fit its shape."""

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return weights and biases; raises SigmaNetworkError if a sample has another rank, or is too small."""
        covered = self.window(x.shape)["window"]
        filters, groups = self.filters_and_groups(x.shape[0])
        shape, area = self.kernel(x.shape[0], filters, groups), prod(covered)
        fans = x.shape[0] // groups * area, filters // groups * area
        weights = Parameter((*shape, *covered), "glorot_uniform", *fans)
        return {"weights": weights, "biases": Parameter((filters,))} if self.bias else {"weights": weights}

    def kernel(self, channels: int, filters: int, groups: int) -> tuple[int, int]:
        """Return the sides of the weights before those of a window."""
        return filters, channels // groups

    def activate(self, context: Context, sums: Node) -> Node:
        """Return the activation of sums and biases."""
        if self.bias:
            sums = sums + f.reshape(context.parameters["biases"], (-1, *(1,) * self.rank))
        activation: Callable[[Node], Node] = context.resolve("activation", self.activation)
        return call_function(activation, sums)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise SigmaNetworkError unless a sample has channels and as many sides as filters have."""
        if len(shape) != self.rank + 1:
            word, _, axes = _SAMPLES[self.rank]
            written = ", ".join(("channels", *axes))
            inside = ", ".join(map(str, (1, *shape))) if len(shape) == self.rank else written
            raise SigmaNetworkError(
                f"{self.called}({shape}): a sample must be {word}, ({written}). Put Reshape({inside}) before it."
            )

    def divisible(self, shape: tuple[int, ...], filters: int, groups: int) -> None:
        """Raise SigmaNetworkError unless channels and filters can be divided into groups."""
        if shape[0] % groups or filters % groups:
            raise SigmaNetworkError(
                f"{self.called}({shape}): {shape[0]} channels and {filters} filters cannot be divided into {groups} "
                "groups. Use a number that divides both."
            )


class Convolving(Sliding):
    """A convolution of any rank."""

    __slots__ = ()

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride, padding and dilation for a sample; SigmaNetworkError if they do not fit its shape."""
        self.check(shape)
        self.divisible(shape, *self.filters_and_groups(shape[0]))
        return window(self.called, shape, self.size, self.stride, self.padding, self.dilation)

    def forward(self, context: Context, x: Node) -> Node:
        """Return the activation of the weighted sums."""
        _warn_of_channels_last(context.address, x, self.rank)
        how, (_, groups) = self.window(x.shape[1:]), self.filters_and_groups(x.shape[1])
        del how["window"]
        return self.activate(context, f.convolution(x, context.parameters["weights"], **how, groups=groups))


@define(eq=False)
class Convolution(Convolving):
    """Convolve samples with filters.

    Args:
        filters: Number of filters, which are the channels of the output.
        size: Sides of a filter: one number, or one for each side.
        stride: Distances between windows, likewise.
        padding: Zeros before and after each side, likewise; ``"same"`` gives ``ceil(n / stride)``.
        activation: Activation function of the sums: its name, or a function of a node.
        bias: Whether biases are added.
        dilation: Distances between the elements of a window, likewise.
        groups: Number of groups of channels; each is convolved with as many of the filters.
    """

    filters: int = field(validator=count)
    size: Sides = field(default=3, validator=sides)
    stride: Sides = field(default=1, validator=sides)
    padding: Padding = field(default=0, validator=padding)
    activation: str | Callable[[Node], Node] = field(default="identity", validator=activation, metadata=ACTIVATION)
    bias: bool = field(default=True, validator=flag)
    dilation: Sides = field(default=1, validator=sides)
    groups: int = field(default=1, validator=count)

    def filters_and_groups(self, channels: int) -> tuple[int, int]:
        """Return filters and groups."""
        return self.filters, self.groups


def _warn_of_channels_last(address: str, samples: Node, rank: int) -> None:
    """Warn if images of the data, or volumes, have one or three columns only: those may be the channels."""
    first, *others, last = samples.shape[1:]
    while samples.op in ("reshape", "cast"):
        samples = samples.inputs[0]
    if samples.op == "input" and others and last in (1, 3) and min(first, *others) > last:
        _, words, axes = _SAMPLES[rank]
        turned = ", ".join(map(str, (0, rank + 1, *range(1, rank + 1))))
        warnings.warn(
            f"{address}: its {words} seem to be ({', '.join((*axes, 'channels'))}), and the first axis is taken for "
            f"{first} channels. Transpose the data to ({', '.join(map(str, (last, first, *others)))}): "
            f"x.transpose({turned}).",
            stacklevel=2,
        )
