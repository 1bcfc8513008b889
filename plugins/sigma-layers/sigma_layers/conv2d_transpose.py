"""2-D transposed convolution over images, channels first."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_layers.transposed_convolutions import TransposedConvolution


@define(eq=False)
class Conv2dTranspose(TransposedConvolution):
    """Upsample images with filters: ``Conv2dTranspose(16, 4, stride=2, padding=1)`` doubles the sides.

    Computes ``activation(y + biases)``, where y is the gradient in its input of a convolution with the same
    settings, for x as the gradient of its output. Weights are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, channels, height, width)`` -> ``(batch, filters, height', width')``, each n becoming ``(n - 1)
    * stride - 2 * padding + dilation * (size - 1) + output_padding + 1``; weights ``(channels, filters // groups,
    *size)``, biases ``(filters,)``.

    Zeiler, Krishnan, Taylor and Fergus, Deconvolutional Networks, 2010.
    """

    rank: ClassVar[int] = 2
    called: ClassVar[str] = "conv2d_transpose"
