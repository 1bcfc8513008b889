"""The cost of predicting numbers: the mean of squared errors."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_kernel.contracts import Context, CostLayer
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node, Spec
from sigma_layers.targets import alike, check_shape


@define(eq=False)
class SquaredDifference(CostLayer):
    """Minimise the mean of ``(output - targets) ** 2``, over everything: ``Output(1) + SquaredDifference()``.

    Exactly ``torch.nn.functional.mse_loss``: no factor of a half, and the mean is over the batch and all sides.

    Shapes: output ``(batch, ...)`` and targets of the same shape, or without a last side of 1 -> one number.
    """

    def forward(self, context: Context, output: Node, targets: Node) -> Node:
        """Return the mean; raises SigmaNetworkError if the shapes differ."""
        return f.mean(f.square(output - alike("squared_difference", self.targets, targets, output)))

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape."""
        check_shape(self.targets, targets, output.shape)
