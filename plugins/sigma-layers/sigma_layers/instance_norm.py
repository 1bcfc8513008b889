"""Instance normalisation of each channel of a sample."""

from __future__ import annotations

from math import prod

from attrs import define, field

from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers.norms import apply_scale_and_shift, require_several, scale_and_shift, standardise
from sigma_layers.settings import flag, positive


@define(eq=False)
class InstanceNorm(Layer):
    """Normalise each channel of each sample over its sides: ``InstanceNorm()``.

    Computes ``scale * (x - mean) / sqrt(variance + epsilon) + shift``, with the mean and the variance (the sum of
    squares over n) of each channel, and a scale and a shift for it; training and evaluation are the same.

    Shapes: ``(batch, channels, *spatial)`` -> the same; scale and shift ``(channels,)``.

    Ulyanov, Vedaldi and Lempitsky, Instance Normalization: The Missing Ingredient for Fast Stylization,
    arXiv:1607.08022.

    Args:
        epsilon: Number added to the variance.
        affine: Whether there are a scale and a shift.
    """

    epsilon: float = field(default=1e-5, validator=positive)
    affine: bool = field(default=True, validator=flag)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return scale and shift; raises SigmaNetworkError unless channels of a sample have several elements."""
        if len(x.shape) < 2:
            raise SigmaNetworkError(
                f"instance_norm({x.shape}): a sample must have channels and sides. Use layer_norm or batch_norm."
            )
        require_several("instance_norm", x.shape, prod(x.shape[1:]), "a channel")
        return scale_and_shift(x.shape[:1]) if self.affine else {}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the normalised samples."""
        rank = len(x.shape)
        normal = standardise(x, range(2, rank), self.epsilon)
        return apply_scale_and_shift(context, normal, (x.shape[1], *(1,) * (rank - 2)))
