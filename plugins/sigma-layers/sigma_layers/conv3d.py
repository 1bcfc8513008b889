"""3-D convolution over volumes, channels first."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_layers.convolutions import Convolution


@define(eq=False)
class Conv3d(Convolution):
    """Convolve volumes with filters: ``Conv3d(32, 3, padding="same", activation="relu")``.

    Computes ``activation(weights * x + biases)``, where ``*`` is a cross-correlation, as in other frameworks.
    Weights are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, channels, depth, height, width)`` -> ``(batch, filters, depth', height', width')``, each n
    becoming ``(n + 2 * padding - dilation * (size - 1) - 1) // stride + 1``; weights ``(filters, channels //
    groups, *size)``, biases ``(filters,)``.

    Ji, Xu, Yang and Yu, 3D Convolutional Neural Networks for Human Action Recognition, 2013.
    """

    rank: ClassVar[int] = 3
    called: ClassVar[str] = "conv3d"
