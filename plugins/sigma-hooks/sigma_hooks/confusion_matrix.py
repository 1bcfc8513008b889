"""Evaluate the confusion matrix of a classifier."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, frozen

from sigma_hooks.classes import said_and_right
from sigma_hooks.evaluate import Evaluate
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node


@frozen
class ConfusionMatrixMetric(Metric):
    """Confusion matrix: counts of true classes (rows) by predicted classes (columns), a list of rows.

    Samples with a NaN score are not counted.
    """

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the counts, int32 ``(classes, classes)``."""
        said, right = said_and_right(prediction, targets)
        return f.cast(f.swap_axes(right, 0, 1) @ said, "int32")

    def value(self, totals: np.ndarray, rows: int) -> list[list[int]]:
        """Return the counts."""
        return [[int(count) for count in row] for row in totals]


@define(eq=False, kw_only=True)
class ConfusionMatrix(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.confusion_matrix``, whose rows are the true classes."""

    def measured(self) -> Mapping[str, Metric]:
        """Return the confusion matrix and the configured metrics."""
        return {"confusion_matrix": ConfusionMatrixMetric(), **self.metrics}
