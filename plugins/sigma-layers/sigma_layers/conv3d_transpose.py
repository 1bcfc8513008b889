"""3-D transposed convolution over volumes, channels first."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_layers.transposed_convolutions import TransposedConvolution


@define(eq=False)
class Conv3dTranspose(TransposedConvolution):
    """Upsample volumes with filters: ``Conv3dTranspose(16, 4, stride=2, padding=1)`` doubles the sides.

    Computes ``activation(y + biases)``, where y is the gradient in its input of a convolution with the same
    settings, for x as the gradient of its output. Weights are initialised by ``glorot_uniform``, biases with 0.

    Shapes: ``(batch, channels, depth, height, width)`` -> ``(batch, filters, depth', height', width')``, each n
    becoming ``(n - 1) * stride - 2 * padding + dilation * (size - 1) + output_padding + 1``; weights ``(channels,
    filters // groups, *size)``, biases ``(filters,)``.

    Zeiler, Krishnan, Taylor and Fergus, Deconvolutional Networks, 2010.
    """

    rank: ClassVar[int] = 3
    called: ClassVar[str] = "conv3d_transpose"
