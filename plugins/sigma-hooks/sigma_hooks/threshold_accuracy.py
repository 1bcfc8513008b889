"""Evaluate the accuracy of binary predictions at a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field, frozen

from sigma_hooks.evaluate import Evaluate
from sigma_hooks.regression import like, per_row
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node


@frozen
class ThresholdAccuracyMetric(Metric):
    """Binary accuracy: the share of outputs that are above ``threshold`` exactly if the target is above one half.

    Several outputs count separately, as in multi-label classification.  A NaN output is never right.

    Args:
        threshold: Output above which it means yes.
    """

    better: ClassVar[str] = "higher"
    threshold: float = 0.5

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the sum over rows of the share of correct outputs, a scalar of the predictions' dtype."""
        said, right = f.greater(prediction, self.threshold), f.greater(like(prediction, targets), 0.5)
        hits = f.logical_and(f.equal(f.cast(said, "int32"), f.cast(right, "int32")), f.equal(prediction, prediction))
        return per_row(f.cast(hits, prediction.dtype))


@define(eq=False, kw_only=True)
class ThresholdAccuracy(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.threshold_accuracy``.

    Args:
        threshold: Output above which it means yes.
    """

    threshold: float = field(default=0.5)

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the accuracy and the configured metrics."""
        return {"threshold_accuracy": ThresholdAccuracyMetric(self.threshold), **self.metrics}
