"""The base of transposed convolutions of every rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers.convolutions import Sliding
from sigma_layers.settings import ACTIVATION, activation, count, flag
from sigma_layers.windows import Padding, Sides, padding, reach, sides, values_per_side, widths


@define(eq=False)
class TransposedConvolution(Sliding):
    """Add a multiple of each filter to the output for each element of a sample: the transpose of a convolution.

    Args:
        filters: Number of filters, which are the channels of the output.
        size: Sides of a filter: one number, or one for each side.
        stride: Distances between the places of neighbours in the output, likewise.
        padding: Elements cut off before and after each side, likewise; ``"same"`` gives ``n * stride``.
        output_padding: Elements added after each side, likewise: less than the stride, and none with ``"same"``.
        activation: Activation function of the sums: its name, or a function of a node.
        bias: Whether biases are added.
        dilation: Distances between the elements of a filter, likewise.
        groups: Number of groups of channels; each adds to as many of the output's channels.
    """

    filters: int = field(validator=count)
    size: Sides = field(default=3, validator=sides)
    stride: Sides = field(default=1, validator=sides)
    padding: Padding = field(default=0, validator=padding)
    output_padding: Sides = field(default=0, validator=widths)
    activation: str | Callable[[Node], Node] = field(default="identity", validator=activation, metadata=ACTIVATION)
    bias: bool = field(default=True, validator=flag)
    dilation: Sides = field(default=1, validator=sides)
    groups: int = field(default=1, validator=count)

    def filters_and_groups(self, channels: int) -> tuple[int, int]:
        """Return filters and groups."""
        return self.filters, self.groups

    def kernel(self, channels: int, filters: int, groups: int) -> tuple[int, int]:
        """Return the channels, and the filters of a group."""
        return channels, filters // groups

    def window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return window, stride, padding, dilation and output padding for a sample.

        Raises SigmaNetworkError if they do not fit its shape.
        """
        self.check(shape)
        same = self.padding == "same"
        given = {
            "size": self.size, "stride": self.stride, "dilation": self.dilation,
            "padding": 0 if same else self.padding, "output_padding": self.output_padding,
        }  # fmt: skip
        spans, steps, gaps, cuts, added = (
            values_per_side(self.called, shape, name, value) for name, value in given.items()
        )
        reaches = [reach(*axis) for axis in zip(spans, gaps, strict=True)]
        pairs = tuple((cut, cut) for cut in cuts)
        if same and not any(added):
            surplus = [covered - step for covered, step in zip(reaches, steps, strict=True)]
            pairs = tuple((max(more, 0) // 2, max(more, 0) - max(more, 0) // 2) for more in surplus)
            added = tuple(max(-more, 0) for more in surplus)
        elif same:
            raise SigmaNetworkError(
                f'{self.called}({shape}): output_padding {self.output_padding!r} and padding "same" contradict each '
                "other: n becomes n * stride. Leave one of them out."
            )
        for axis in zip(shape[1:], steps, reaches, pairs, added, strict=True):
            self._check_side(shape, *axis)
        self.divisible(shape, self.filters, self.groups)
        return {"window": spans, "stride": steps, "padding": pairs, "dilation": gaps, "output_padding": added}

    def _check_side(self, shape: Any, n: int, step: int, covered: int, pair: tuple[int, int], added: int) -> None:
        if added >= step:
            raise SigmaNetworkError(
                f"{self.called}({shape}): output_padding {added} is not less than the stride, {step}. Use less."
            )
        if (n - 1) * step + covered + added <= sum(pair):
            raise SigmaNetworkError(
                f"{self.called}({shape}): padding {pair} leaves nothing of a side of {n}. Use less padding."
            )

    def forward(self, context: Context, x: Node) -> Node:
        """Return the activation of the sums."""
        how = self.window(x.shape[1:])
        del how["window"]
        return self.activate(
            context, f.convolution_transpose(x, context.parameters["weights"], **how, groups=self.groups)
        )
