"""Normalisation by the root mean square over trailing axes."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.graph import Node, Spec
from sigma_layers.norms import apply_scale_and_shift, trailing
from sigma_layers.settings import count, flag, positive


@define(eq=False)
class RMSNorm(Layer):
    """Divide each sample by its root mean square over the last axis, or several of them: ``RMSNorm()``.

    Computes ``scale * x / sqrt(mean(x * x) + epsilon)``, the mean being over the trailing axes; training and evaluation
    are the same.

    Shapes: ``(batch, ..., *sides)`` -> the same; scale ``sides``, those of the trailing axes.

    Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467.

    Args:
        axes: Number of trailing axes that are normalised together.
        epsilon: Number added to the mean square.
        affine: Whether there is a scale.
    """

    axes: int = field(default=1, validator=count)
    epsilon: float = field(default=1e-6, validator=positive)
    affine: bool = field(default=True, validator=flag)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return the scale, at first 1; raises SigmaNetworkError if a sample has fewer axes."""
        sides = trailing("rms_norm", x.shape, self.axes)
        return {"scale": Parameter(sides, 1.0)} if self.affine else {}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the normalised samples."""
        axes = tuple(range(len(x.shape) - self.axes, len(x.shape)))
        squares = f.mean(f.square(x), axes, keepdims=True)
        return apply_scale_and_shift(context, x / f.sqrt(squares + self.epsilon), x.shape[-self.axes :])
