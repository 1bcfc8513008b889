"""Metrics of rows that may have several labels each."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from sigma_hooks.classes import AVERAGES, ratio
from sigma_hooks.regression import like
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_


def said_and_true(prediction: Node, targets: Node, threshold: float) -> tuple[Node, Node]:
    """Return which labels are predicted, and which are there, as 0 and 1, int32 ``(n, labels)``.

    A label is there if its target is above one half; a NaN predicts none.
    """
    shape = (prediction.shape[0], prod(prediction.shape[1:]))
    said, true = f.greater(prediction, threshold), f.greater(like(prediction, targets), 0.5)
    return f.cast(f.reshape(said, shape), "int32"), f.cast(f.reshape(true, shape), "int32")


def right_labels(prediction: Node, targets: Node, threshold: float) -> Node:
    """Return which labels are predicted as they are, as 0 and 1, int32 ``(n, labels)``; a NaN never is."""
    said, true = said_and_true(prediction, targets, threshold)
    number = f.reshape(f.equal(prediction, prediction), said.shape)
    return f.cast(f.logical_and(f.equal(said, true), number), "int32")


@frozen
class HammingLossMetric(Metric):
    """Hamming loss: the share of labels of all rows that are predicted wrongly; a NaN always is.

    Predictions ``(n, ...)`` are probabilities of labels, and targets of the same size are 1 for labels that are there.
    Same as ``sklearn.metrics.hamming_loss``.

    Args:
        threshold: Probability above which a label is predicted.
    """

    better: ClassVar[str] = "lower"
    threshold: float = 0.5

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the numbers of wrong labels and of labels, int32 ``(2,)``."""
        right = right_labels(prediction, targets, self.threshold)
        return f.stack(f.sum(1 - right), f.sum(f.full(1, right.shape, "int32")))

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the share."""
        wrong, labels = np.asarray(totals, np.float64)
        return float(wrong / labels)


@frozen
class SubsetAccuracyMetric(Metric):
    """Subset accuracy: the share of rows of which all labels are predicted as they are.

    Predictions and targets are those of :class:`HammingLossMetric`.  Same as ``sklearn.metrics.accuracy_score`` of
    indicators of labels.

    Args:
        threshold: Probability above which a label is predicted.
    """

    better: ClassVar[str] = "higher"
    threshold: float = 0.5

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the number of such rows, an int32 scalar."""
        return f.sum(f.min(right_labels(prediction, targets, self.threshold), axis=1))

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the share."""
        return float(totals) / rows


@frozen
class LabelF1Metric(Metric):
    """F1 score of labels, of which a row may have several: the harmonic mean of precision and recall.

    Predictions and targets are those of :class:`HammingLossMetric`.  The score of a label that is neither there nor
    predicted is 0.  Same as ``sklearn.metrics.f1_score`` of indicators of labels.

    Args:
        average: Over labels: ``macro`` is the mean, ``micro`` pools the counts of all, and ``each`` is a list with one
            score for each.
        threshold: Probability above which a label is predicted.
    """

    better: ClassVar[str] = "higher"
    average: str = field(default="macro", validator=in_(AVERAGES))
    threshold: float = 0.5

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return true positives, predictions and labels that are there, by label: int32 ``(3, labels)``."""
        said, true = said_and_true(prediction, targets, self.threshold)
        return f.stack(*(f.sum(rows, axis=0) for rows in (said * true, said, true)))

    def value(self, totals: np.ndarray, rows: int) -> Any:
        """Return the average, or a list with one score per label."""
        both, said, true = np.asarray(totals, np.float64)
        if self.average == "micro":
            return float(ratio(2.0 * both.sum(), said.sum() + true.sum()))
        scores = ratio(2.0 * both, said + true)
        return [float(score) for score in scores] if self.average == "each" else float(scores.mean())
