"""Evaluate the coefficient of determination, R squared."""

from __future__ import annotations

from collections.abc import Mapping

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

    Of several outputs it is the mean.  If all targets are equal it is 1 without any error, else 0.  Sums of squares
    around means are merged as in Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing
    Sample Variances, 1979, which avoids cancellation for large targets.
    """

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return rows, mean, total sum of squares and residual sum of squares of each output: ``(4, outputs)``."""
        rows = prediction.shape[0]
        found = f.reshape(prediction, (rows, -1))
        wanted = f.reshape(like(prediction, targets), (rows, -1))
        mean = f.mean(wanted, axis=0, keepdims=True)
        spread, wrong = f.sum(f.square(wanted - mean), axis=0), f.sum(f.square(found - wanted), axis=0)
        return f.stack(f.ones(spread.shape, prediction.dtype) * float(rows), f.squeeze(mean, 0), spread, wrong)

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the totals of two batches together, in float64."""
        (n, mean, spread, wrong), (m, other, spread_b, wrong_b) = np.asarray(a, np.float64), np.asarray(b, np.float64)
        apart = other - mean
        return np.stack(
            [n + m, mean + apart * m / (n + m), spread + spread_b + apart**2 * n * m / (n + m), wrong + wrong_b]
        )

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the mean over the outputs."""
        _, _, spread, wrong = np.asarray(totals, np.float64)
        constant = spread == 0
        shares = 1.0 - wrong / np.where(constant, 1.0, spread)
        return float(np.mean(np.where(constant, wrong == 0, shares)))


@define(eq=False, kw_only=True)
class RSquared(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.r_squared``."""

    def measured(self) -> Mapping[str, Metric]:
        """Return the coefficient and the configured metrics."""
        return {"r_squared": RSquaredMetric(), **self.metrics}
