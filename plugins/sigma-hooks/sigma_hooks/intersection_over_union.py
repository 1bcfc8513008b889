"""Evaluate the intersection over union of a segmentation."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import AVERAGES, ClassMetric, metric_name, ratio
from sigma_hooks.evaluate import Evaluate
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_, optional, whole


@frozen
class IntersectionOverUnionMetric(ClassMetric):
    """Intersection over union (Jaccard index): true positives over all that are predicted, or true, or both.

    Predictions ``(n, ..., classes)`` choose the class of the highest score, the first of equal ones, for each label
    ``(n, ...)`` or ``(n, ..., 1)``; a NaN score predicts none.  Predictions of the targets' shape are probabilities of
    class 1, compared with one half, and only class 1 is scored; its targets are 1 for yes, and 0 or -1 for no.  Counts
    are pooled over all rows.  The same as scikit-learn's ``jaccard_score``.  Everingham et al., The Pascal Visual
    Object Classes (VOC) Challenge, 2010.

    Raises SigmaDataError if targets are not classes.

    Args:
        average: Over classes: ``macro`` is the mean over those that occur in predictions or targets, ``micro`` pools
            the counts of all, and ``each`` is a list with one score for each.
        ignore_index: Label that does not count, such as that of unknown places.
    """

    called: ClassVar[str] = "intersection_over_union"

    def score(self, both: np.ndarray, said: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the intersection over union."""
        return ratio(both, said + right - both)

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return true positives, predictions and true labels by class, and wrong labels: int32 ``(4, classes)``."""
        if prod(targets.shape) == prod(prediction.shape):
            prediction, targets = f.reshape(prediction, (-1, 1)), f.reshape(targets, (-1, 1))
        return super().totals(prediction, targets)


@define(eq=False, kw_only=True)
class IntersectionOverUnion(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.intersection_over_union``, or with the average in its name if not ``macro``.

    Args:
        average: Over classes: the mean over those that occur, the pooled counts of all, or a list with one score for
            each.
        ignore_index: Label that does not count, such as that of unknown places.
    """

    average: str = field(default="macro", validator=in_(AVERAGES))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the score and the configured metrics."""
        metric = IntersectionOverUnionMetric(self.average, self.ignore_index)
        return {metric_name("intersection_over_union", self.average): metric, **self.metrics}
