"""Filters of layers as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from attrs import define, field

from sigma_hooks.reading import read_all
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, PictureValue
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import ge


@define(eq=False, kw_only=True)
class Filters(Hook):
    """Publish the filters of each layer as a picture, ``filters.<address>``: blue below 0, orange above, of one scale.

    These are the kernels of convolutions, by default the mean over more channels than 3, and the weights of units that
    read pictures: ``shape`` says of what size, by default that of the input. Other arrays are left out.

    Args:
        of: Pattern of parameters.
        shape: Height and width of the pictures that dense units read.
        most: Number of filters of a layer.
    """

    every: TimeStep = every(1, "epoch")
    of: str = field(default="network.layers.**.weights", kw_only=False)
    shape: Sequence[int] | None = None
    most: int = field(default=64, validator=ge(1))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a shape that is none of a picture."""
        if self.shape is not None and (len(self.shape) != 2 or min(self.shape) < 1):
            raise SigmaConfigError(f"filters.shape: must be height and width (got {self.shape!r}).")

    @property
    def reads(self) -> Sequence[str]:
        """Return the pattern."""
        return [self.of]

    @property
    def writes(self) -> Sequence[str]:
        """Return the pattern of all addresses."""
        return ["filters.**"]

    def fire(self, context: HookContext) -> None:
        """Publish the filters of each array that has some."""
        shape = tuple(self.shape or context.ends()[0].shape)
        for address, value in read_all(context, self.of).items():
            kernels = find_filters(np.asarray(value), shape)
            if kernels is not None:
                context.publish(f"filters.{address}", _draw(kernels[: self.most]))


def find_filters(weights: np.ndarray, shape: Sequence[int]) -> np.ndarray | None:
    """Return the filters in weights, ``(filters, height, width)``; None if there are none."""
    filters: np.ndarray | None = None
    sides = tuple(shape)[-2:]
    if weights.ndim == 4 and max(weights.shape[2:]) > 1:  # of a convolution: units, channels, height, width
        filters = weights.mean(1)
    elif weights.ndim == 2 and len(sides) == 2 and prod(shape) == prod(sides) == len(weights):
        filters = weights.T.reshape(-1, *sides)
    return filters


def _draw(kernels: np.ndarray) -> PictureValue:
    most = float(np.abs(kernels[np.isfinite(kernels)]).max(initial=0))
    return PictureValue.tile([PictureValue.draw_signed(kernel, most) for kernel in kernels]).fit()
