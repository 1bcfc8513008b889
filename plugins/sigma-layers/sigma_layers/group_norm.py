"""Group normalisation over groups of channels."""

from __future__ import annotations

from math import prod

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers.norms import apply_scale_and_shift, require_several, scale_and_shift, standardise
from sigma_layers.settings import count, flag, positive


@define(eq=False)
class GroupNorm(Layer):
    """Normalise each sample over groups of channels and their sides: ``GroupNorm(8)``.

    Computes ``scale * (x - mean) / sqrt(variance + epsilon) + shift``, with the mean and the variance (the sum of
    squares over n) of each group, and a scale and a shift for each channel; training and evaluation are the same.

    Shapes: ``(batch, channels, *spatial)`` -> the same; scale and shift ``(channels,)``.

    Wu and He, Group Normalization, arXiv:1803.08494.

    Args:
        groups: Number of groups, which divides that of the channels.
        epsilon: Number added to the variance.
        affine: Whether there are a scale and a shift.
    """

    groups: int = field(validator=count)
    epsilon: float = field(default=1e-5, validator=positive)
    affine: bool = field(default=True, validator=flag)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return scale and shift; raises SigmaNetworkError unless the groups divide the channels of a sample."""
        if not x.shape or x.shape[0] % self.groups:
            raise SigmaNetworkError(
                f"group_norm({x.shape}): its channels, on the first axis, cannot be divided into {self.groups} groups. "
                "Use a number that divides them."
            )
        require_several("group_norm", x.shape, prod(x.shape) // self.groups, "a group")
        return scale_and_shift(x.shape[:1]) if self.affine else {}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the normalised samples."""
        groups = f.reshape(x, (x.shape[0], self.groups, -1))
        normal = f.reshape(standardise(groups, (2,), self.epsilon), x.shape)
        return apply_scale_and_shift(context, normal, (x.shape[1], *(1,) * (len(x.shape) - 2)))
