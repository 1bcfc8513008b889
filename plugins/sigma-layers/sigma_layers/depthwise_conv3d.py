"""3-D depthwise convolution over volumes, channels first."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_layers.depthwise_convolutions import DepthwiseConvolution


@define(eq=False)
class DepthwiseConv3d(DepthwiseConvolution):
    """Convolve each channel of volumes with filters of its own: ``DepthwiseConv3d(3, padding="same")``.

    Computes ``activation(weights * x + biases)`` as conv3d with as many groups as channels; output ``c * multiplier
    + k`` is filter k of channel c. Weights are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, channels, depth, height, width)`` -> ``(batch, channels * multiplier, depth', height',
    width')``, each n becoming ``(n + 2 * padding - dilation * (size - 1) - 1) // stride + 1``; weights ``(channels
    * multiplier, 1, *size)``, biases ``(channels * multiplier,)``.

    Chollet, Xception: Deep Learning with Depthwise Separable Convolutions, arXiv:1610.02357.
    """

    rank: ClassVar[int] = 3
    called: ClassVar[str] = "depthwise_conv3d"
