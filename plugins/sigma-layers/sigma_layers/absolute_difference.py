"""Mean absolute error (L1), for regression."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.graph import Node, Spec
from sigma_layers.targets import alike, check_shape, mean


@define(eq=False)
class AbsoluteDifference(CostLayer):
    """Minimise the mean of ``|output - targets|`` over all elements: ``Output(1) + AbsoluteDifference()``.

    Matches ``torch.nn.functional.l1_loss``. It is minimised by the median of the targets. Where a difference is 0, so
    is its slope.

    Shapes: output ``(batch, ...)`` and targets of the same shape, or without a trailing axis of 1 -> scalar.
    """

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        return mean(f.abs(output - alike("absolute_difference", self.targets, targets, output)), weights)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape."""
        check_shape(self.targets, targets, output.shape)
