"""Poisson likelihood, for counts."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph import Node, Spec
from sigma_layers.targets import alike, check_shape, first_bad, mean


@define(eq=False)
class Poisson(CostLayer):
    """Minimise the negative log-likelihood of counts, given the logarithm of their rate: ``Output(1) + Poisson()``.

    It is the mean of ``exp(output) - targets * output`` over all elements; the logarithm of the targets' factorial,
    which does not depend on the output, is left out. Matches ``torch.nn.functional.poisson_nll_loss``. Predictions are
    rates, ``exp(output)``.

    Shapes: output ``(batch, ...)`` and targets of the same shape, or without a trailing axis of 1 -> scalar.
    """

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        return mean(f.exp(output) - alike("poisson", self.targets, targets, output) * output, weights)

    def prediction(self, output: Node) -> Node:
        """Return the rates, ``exp(output)``."""
        return f.exp(output)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape, or are below 0."""
        check_shape(self.targets, targets, output.shape)
        if (wrong := ~(targets >= 0)).any():
            place = first_bad(wrong)
            raise SigmaDataError(
                f"data: section {self.targets!r}, row {place[0]}: {targets[place]} is not a count. "
                "Counts are at least 0."
            )
