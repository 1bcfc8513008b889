"""Measure how often probabilities lie on the right side of a threshold."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from sigma_hooks.evaluate import Evaluate
from sigma_hooks.regression import like, per_row
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node


@frozen
class ThresholdAccuracyMetric(Metric):
    """The share of outputs above ``threshold`` where the target is above one half, and not above it elsewhere.

    Of several outputs each counts by itself: any number of answers may be right at once.  An output that is not a
    number is above nothing.
    """

    threshold: float = 0.5

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the sum over rows of the share that is right, a scalar of the predictions' dtype."""
        said, right = f.greater(prediction, self.threshold), f.greater(like(prediction, targets), 0.5)
        hits = f.cast(f.equal(f.cast(said, "int32"), f.cast(right, "int32")), prediction.dtype)
        return per_row(hits)


@define(eq=False, kw_only=True)
class ThresholdAccuracy(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.threshold_accuracy``."""

    threshold: float = field(default=0.5)

    def measured(self) -> Mapping[str, Metric]:
        """Return the accuracy beside the metrics that were asked for."""
        return {"threshold_accuracy": ThresholdAccuracyMetric(self.threshold), **self.metrics}
