"""Layer normalisation over trailing axes."""

from __future__ import annotations

from math import prod

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.graph import Node, Spec
from sigma_layers.norms import require_several, scale_and_shift, trailing
from sigma_layers.settings import count, flag, positive


@define(eq=False)
class LayerNorm(Layer):
    """Normalise each sample over its last axis, or several of them: ``LayerNorm()``, ``LayerNorm(axes=3)``.

    Computes ``scale * (x - mean) / sqrt(variance + epsilon) + shift``, with the mean and the variance (the sum of
    squares over n) of the trailing axes; training and evaluation are the same.

    Shapes: ``(batch, ..., *sides)`` -> the same; scale and shift ``sides``, those of the trailing axes.

    Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450.

    Args:
        axes: Number of trailing axes that are normalised together.
        epsilon: Number added to the variance.
        affine: Whether there are a scale and a shift.
    """

    axes: int = field(default=1, validator=count)
    epsilon: float = field(default=1e-5, validator=positive)
    affine: bool = field(default=True, validator=flag)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return scale and shift; raises SigmaNetworkError if a sample has fewer axes."""
        sides = trailing("layer_norm", x.shape, self.axes)
        require_several("layer_norm", x.shape, prod(sides), "what is normalised together")
        return scale_and_shift(sides) if self.affine else {}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the normalised samples."""
        side = prod(x.shape[-self.axes :])
        flat = f.reshape(x, (*x.shape[: -self.axes], side))
        if self.affine:
            scale, shift = (f.reshape(context.parameters[name], (side,)) for name in ("scale", "shift"))
        else:
            scale, shift = f.ones((side,), x.dtype), f.zeros((side,), x.dtype)
        return f.reshape(f.layer_norm(flat, scale, shift, self.epsilon), x.shape)
