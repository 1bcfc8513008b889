"""2-D convolution over images, channels first."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_layers.convolutions import Convolution


@define(eq=False)
class Conv2d(Convolution):
    """Convolve images with filters: ``Conv2d(32, 3, padding="same", activation="relu")``.

    Computes ``activation(weights * x + biases)``, where ``*`` is a cross-correlation, as in other frameworks.
    Weights are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, channels, height, width)`` -> ``(batch, filters, height', width')``, each n becoming ``(n + 2
    * padding - dilation * (size - 1) - 1) // stride + 1``; weights ``(filters, channels // groups, *size)``, biases
    ``(filters,)``.

    LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998.
    """

    rank: ClassVar[int] = 2
    called: ClassVar[str] = "conv2d"
