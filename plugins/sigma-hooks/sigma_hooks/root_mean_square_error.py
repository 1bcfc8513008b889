"""Evaluate the root mean square error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from attrs import define, frozen

from sigma_hooks.evaluate import Evaluate
from sigma_hooks.regression import like, per_row
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node


@frozen
class RootMeanSquareErrorMetric(Metric):
    """Root mean square error: the root of the mean of ``(prediction - target)^2``, in units of the target."""

    better: ClassVar[str] = "lower"

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the sum of squares over rows, each the mean over its outputs."""
        return per_row(f.square(prediction - like(prediction, targets)))

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the root of the mean."""
        return float(np.sqrt(totals / rows))


@define(eq=False, kw_only=True)
class RootMeanSquareError(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.root_mean_square_error``."""

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the error and the configured metrics."""
        return {"root_mean_square_error": RootMeanSquareErrorMetric(), **self.metrics}
