"""Mean squared error, for regression."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.graph import Node, Spec
from sigma_layers.targets import alike, check_shape, mean


@define(eq=False)
class SquaredDifference(CostLayer):
    """Minimise the mean of ``(output - targets) ** 2`` over all elements: ``Output(1) + SquaredDifference()``.

    Matches ``torch.nn.functional.mse_loss``: no factor of one half.

    Shapes: output ``(batch, ...)`` and targets of the same shape, or without a trailing axis of 1 -> scalar.
    """

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        return mean(f.square(output - alike("squared_difference", self.targets, targets, output)), weights)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape."""
        check_shape(self.targets, targets, output.shape)
