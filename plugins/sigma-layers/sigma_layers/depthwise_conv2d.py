"""2-D depthwise convolution over images, channels first."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_layers.depthwise_convolutions import DepthwiseConvolution


@define(eq=False)
class DepthwiseConv2d(DepthwiseConvolution):
    """Convolve each channel of images with filters of its own: ``DepthwiseConv2d(3, padding="same")``.

    Computes ``activation(weights * x + biases)`` as conv2d with as many groups as channels; output ``c * multiplier
    + k`` is filter k of channel c. Weights are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, channels, height, width)`` -> ``(batch, channels * multiplier, height', width')``, each n
    becoming ``(n + 2 * padding - dilation * (size - 1) - 1) // stride + 1``; weights ``(channels * multiplier, 1,
    *size)``, biases ``(channels * multiplier,)``.

    Chollet, Xception: Deep Learning with Depthwise Separable Convolutions, arXiv:1610.02357.
    """

    rank: ClassVar[int] = 2
    called: ClassVar[str] = "depthwise_conv2d"
