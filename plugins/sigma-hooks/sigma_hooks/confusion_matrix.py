"""Count which class was taken for which."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, frozen

from sigma_hooks.classes import said_and_right
from sigma_hooks.evaluate import Evaluate
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node


@frozen
class ConfusionMatrixMetric(Metric):
    """How often each class, by row, was said to be each class, by column: a list of rows.

    A sample with a score that is not a number is in no cell.
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
    """Publish ``<on>.loss`` and ``<on>.confusion_matrix``, whose rows are the right classes."""

    def measured(self) -> Mapping[str, Metric]:
        """Return the confusion matrix beside the metrics that were asked for."""
        return {"confusion_matrix": ConfusionMatrixMetric(), **self.metrics}
