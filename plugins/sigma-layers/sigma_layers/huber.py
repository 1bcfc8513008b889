"""Huber loss, for regression with outliers."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals, live
from sigma_kernel.graph import Node, Spec
from sigma_layers.targets import alike, check_shape, mean


@define(eq=False)
class Huber(CostLayer):
    """Minimise squared errors up to ``delta``, and absolute errors beyond: ``Output(1) + Huber(1.0)``.

    With the error ``e = output - targets``: the mean over all elements of ``e ** 2 / 2`` where ``|e| <= delta``, and
    of ``delta * (|e| - delta / 2)`` elsewhere. Matches ``torch.nn.functional.huber_loss``. The smooth L1 loss with
    ``beta`` is ``Huber(beta, weight=1 / beta)``. The delta can be set live.

    Shapes: output ``(batch, ...)`` and targets of the same shape, or without a trailing axis of 1 -> scalar.

    Huber, Robust Estimation of a Location Parameter, 1964.

    Args:
        delta: Size of an error from which on it counts linearly, in units of the targets.
    """

    delta: float = live(1.0, above=0.0)

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        error, delta = output - alike("huber", self.targets, targets, output), context.live["delta"]
        near = f.clip(error, -delta, delta)
        return mean(near * (error - near * 0.5), weights)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape."""
        check_shape(self.targets, targets, output.shape)
