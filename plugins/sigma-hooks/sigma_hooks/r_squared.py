"""Evaluate the coefficient of determination, R squared."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, nan
from typing import ClassVar

import numpy as np
from attrs import define, frozen

from sigma_hooks.evaluate import Evaluate
from sigma_hooks.regression import like
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node


@frozen
class RSquaredMetric(Metric):
    """Coefficient of determination: 1 minus the residual sum of squares over the total sum of squares.

    Of several outputs it is the mean.  If all targets are equal it is 1 without any error, else 0.  Predictions and
    targets are kept in memory until the end: the mean of the targets is known then, and sums of squares around it stay
    exact for large targets that differ little.
    """

    better: ClassVar[str] = "higher"
    keeps_rows: ClassVar[bool] = True

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return prediction and target of each output: ``(n, 2, outputs)``."""
        pair = (f.reshape(x, (prediction.shape[0], -1)) for x in (prediction, like(prediction, targets)))
        return f.stack(*pair, axis=1)

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the mean over the outputs."""
        return float(np.mean([determination(*pair) for pair in np.moveaxis(totals, 0, -1).swapaxes(0, 1)]))


def determination(predictions: np.ndarray, wanted: np.ndarray) -> float:
    """Return R squared of one output; of any order of the rows it has the same bits."""
    predictions, wanted = predictions.astype(np.float64), wanted.astype(np.float64)
    if not np.isfinite(predictions).all():
        return nan
    if (wanted == wanted[0]).all():
        return float((predictions == wanted).all())
    around = wanted - fsum(wanted.tolist()) / len(wanted)
    wrong, spread = (fsum(np.square(x).tolist()) for x in (predictions - wanted, around))
    return 1.0 - wrong / spread


@define(eq=False, kw_only=True)
class RSquared(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.r_squared``."""

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the coefficient and the configured metrics."""
        return {"r_squared": RSquaredMetric(), **self.metrics}
