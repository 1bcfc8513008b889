"""Batch normalisation, with running statistics for evaluation."""

from __future__ import annotations

from math import prod

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer, Outputs, Parameter, live
from sigma_kernel.graph import Node, Spec
from sigma_layers.axes import place
from sigma_layers.norms import apply_scale_and_shift, scale_and_shift
from sigma_layers.settings import flag, positive, whole


@define(eq=False)
class BatchNorm(Layer):
    """Normalise each feature over the batch: ``Conv2d(32, 3, bias=False) + BatchNorm() + Activation("relu")``.

    Computes ``scale * (x - mean) / sqrt(variance + epsilon) + shift`` for each feature, in training with the mean and
    the variance of the batch, over all axes but that of the features, and in evaluation with the running ones, which
    are state of the layer, ``mean`` and ``variance``. Each batch moves them in training: ``mean + momentum * (batch's
    mean - mean)``, and likewise the variance, with the batch's sum of squares over ``n - 1``. A batch that has one
    value of each feature has no variance; its output is the shift, and the running variance stays.

    With shards, each shard normalises with its own statistics, as every device does in other frameworks; the running
    statistics are the mean of those of the shards, weighted by their rows.

    Shapes: ``(batch, features, *spatial)`` -> the same; scale, shift, mean and variance ``(features,)``.

    Ioffe and Szegedy, Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift,
    arXiv:1502.03167.

    Args:
        momentum: Weight of the newest batch in the running statistics, as in PyTorch; in Keras it is 1 minus this.
        epsilon: Number added to the variance.
        affine: Whether there are a scale and a shift.
        axis: Axis of the features; the batch is axis 0. For sequences ``(time, features)`` use -1.
    """

    momentum: float = live(0.1, low=0.0, high=1.0)
    epsilon: float = field(default=1e-5, validator=positive)
    affine: bool = field(default=True, validator=flag)
    axis: int = field(default=1, validator=whole)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return scale and shift; raises SigmaNetworkError if a sample does not have the axis of the features."""
        return scale_and_shift((self._features(x),)) if self.affine else {}

    def state(self, x: Spec) -> dict[str, Parameter]:
        """Return the running mean, at first 0, and the running variance, at first 1."""
        features = (self._features(x),)
        return {"mean": Parameter(features), "variance": Parameter(features, 1.0)}

    def _features(self, x: Spec) -> int:
        return x.shape[place("batch_norm", x.shape, self.axis) - 1]

    def forward(self, context: Context, x: Node) -> Node | Outputs:
        """Return the normalised batch, and in training the new running statistics."""
        at = place("batch_norm", x.shape[1:], self.axis)
        wide = tuple(side if k == at else 1 for k, side in enumerate(x.shape))
        if not context.training:
            mean, variance = (f.reshape(context.state[name], wide) for name in ("mean", "variance"))
            return apply_scale_and_shift(context, (x - mean) / f.sqrt(variance + self.epsilon), wide)
        axes = tuple(k for k in range(len(x.shape)) if k != at)
        mean = f.mean(x, axes, keepdims=True)
        centred = x - mean
        variance = f.mean(f.square(centred), axes, keepdims=True)
        y = apply_scale_and_shift(context, centred / f.sqrt(variance + self.epsilon), wide)
        return Outputs(y, self._update_statistics(context, mean, variance, prod(x.shape) // wide[at]))

    def _update_statistics(self, context: Context, mean: Node, variance: Node, n: int) -> dict[str, Node]:
        """Return the running statistics after a batch with ``n`` values of each feature."""
        statistics = {"mean": mean, "variance": variance * (n / (n - 1))} if n > 1 else {"mean": mean}
        state = dict(context.state)
        for name, new in statistics.items():
            state[name] = state[name] + context.live["momentum"] * (f.reshape(new, state[name].shape) - state[name])
        return state
