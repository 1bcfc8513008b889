"""Evaluate the maximum mean discrepancy between generated and real samples."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.evaluate import Evaluate
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, finite, gt, instance_of

TOGETHER = 1 << 22  # kernel values computed at once

SECTION = instance_of(str, "the name of a section")


@frozen
class MaximumMeanDiscrepancyMetric(Metric):
    """Squared maximum mean discrepancy between the distributions of predictions and targets; rows are not paired.

    With predictions ``x, x'`` and targets ``y, y'``: ``E k(x, x') + E k(y, y') - 2 E k(x, y)`` over different rows, for
    the Gaussian kernel ``k(a, b) = exp(-|a - b|^2 / (2 bandwidth^2))`` of the Euclidean distance over all elements.
    The estimator is unbiased, hence at times a little below 0; its mean is 0 if and only if the distributions are
    equal.  All rows are kept in memory until the end; with fewer than two, it is NaN.

    Gretton, Borgwardt, Rasch, Schoelkopf and Smola, A Kernel Two-Sample Test, 2012, lemma 6.

    Args:
        bandwidth: Standard deviation of the kernel, about the distance of neighbours in the data.
        section: Section of the data to compare with; by default the targets of the output's cost.
    """

    better: ClassVar[str] = "lower"
    keeps_rows: ClassVar[bool] = True

    bandwidth: float = field(default=1.0, validator=and_(finite, gt(0.0)))
    section: str = field(default="", validator=SECTION)

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return both samples of each row, side by side."""
        if prediction.shape != targets.shape:
            raise SigmaNetworkError(
                f"maximum_mean_discrepancy: predictions have shape {prediction.shape}, and the section to compare with "
                f"has {targets.shape}. Name a `section` of samples of the same shape, or add a reshape to the network."
            )
        flat = (prediction.shape[0], -1)
        return f.concat(f.reshape(prediction, flat), f.cast(f.reshape(targets, flat), prediction.dtype), axis=1)

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the discrepancy."""
        samples, real = map(_in_order, np.split(np.asarray(totals, np.float64), 2, axis=1))
        if rows < 2 or not np.isfinite(totals).all():
            return nan
        within = self._total(samples, samples) + self._total(real, real) - 2 * rows  # but for a row with itself
        return within / (rows * (rows - 1)) - 2 * self._total(samples, real) / rows**2

    def _total(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the sum of the kernel of all rows of one array with all rows of the other."""
        step = max(1, TOGETHER // len(b))
        sizes = np.square(b).sum(1)
        total = 0.0
        for part in (a[start : start + step] for start in range(0, len(a), step)):
            apart = np.square(part).sum(1)[:, None] + sizes - 2 * part @ b.T
            total += float(np.exp(-np.maximum(apart, 0.0) / (2 * self.bandwidth**2)).sum())
        return total


def _in_order(rows: np.ndarray) -> np.ndarray:
    """Return rows in a canonical order, so that sums over them have the same bits for any order of the data."""
    return rows[np.lexsort(rows.T)]


@define(eq=False, kw_only=True)
class MaximumMeanDiscrepancy(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.maximum_mean_discrepancy``.

    Args:
        bandwidth: Distance over which rows count as alike, about that of neighbours in the data.
        section: Section of the data to compare with; by default that of the output's cost.
    """

    bandwidth: float = field(default=1.0, validator=and_(finite, gt(0.0)))
    section: str = field(default="", validator=SECTION)

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the discrepancy and the configured metrics."""
        metric = MaximumMeanDiscrepancyMetric(self.bandwidth, self.section)
        return {"maximum_mean_discrepancy": metric, **self.metrics}
