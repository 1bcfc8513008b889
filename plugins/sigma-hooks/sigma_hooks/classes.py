"""Counts of predicted and true classes, for precision, recall, F1 and the confusion matrix."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_

AVERAGES = ("macro", "micro", "each")


def said_and_right(prediction: Node, targets: Node) -> tuple[Node, Node]:
    """Return the predicted class and the true class, each as one-hot rows ``(n, classes)``.

    The first of equal scores wins; rows with a NaN score predict no class.  Predictions of shape ``(n, 1)`` or ``(n,)``
    are probabilities of class 1 of two.  Targets are class indices ``(n,)`` or ``(n, 1)``, or one-hot rows.
    """
    if len(prediction.shape) == 1 or prediction.shape[1:] == (1,):
        flat = f.reshape(prediction, (prediction.shape[0],))
        said = _rows(f.cast(f.greater(flat, 0.5), "int32"), 2, prediction, flat)
        return said, _rows(f.cast(f.reshape(targets, flat.shape), "int32"), 2, prediction)
    if len(prediction.shape) != 2:
        raise SigmaNetworkError(f"class metrics: predictions have shape {prediction.shape}; expected (n, classes).")
    targets = labels(targets)
    right = f.argmax(targets, axis=1) if len(targets.shape) == 2 else f.cast(targets, "int32")
    worst = f.min(prediction, axis=1) + f.max(prediction, axis=1)  # NaN if any score is NaN
    said = _rows(f.argmax(prediction, axis=1), prediction.shape[1], prediction, worst)
    return said, _rows(right, prediction.shape[1], prediction)


def labels(targets: Node) -> Node:
    """Return labels in a column, ``(n, 1)``, as one for each row; others unchanged."""
    return f.reshape(targets, targets.shape[:1]) if targets.shape[1:] == (1,) else targets


def flat_labels(metric: str, prediction: Node, targets: Node, dtype: str = "int32") -> Node:
    """Return labels ``(n, ...)`` for predictions ``(n, ..., classes)``, of targets that may have a last axis of 1."""
    if targets.shape not in (prediction.shape[:-1], (*prediction.shape[:-1], 1)):
        raise SigmaNetworkError(
            f"{metric}: predictions have shape {prediction.shape} and targets {targets.shape}; expected "
            f"{prediction.shape[:-1]}, one label for each row of scores."
        )
    return f.cast(f.reshape(targets, prediction.shape[:-1]), dtype)


def _rows(index: Node, classes: int, prediction: Node, score: Node | None = None) -> Node:
    rows = f.one_hot(index, classes, prediction.dtype)
    return rows if score is None else f.where(f.expand(f.equal(score, score), 1), rows, 0.0)


@frozen
class ClassMetric(Metric):
    """Score of each class, from the counts of predictions, true labels and true positives.

    A ratio with denominator 0 is 0. For a single probability, only class 1 is scored. Same as scikit-learn.

    Args:
        average: Over classes: ``macro`` is the mean over those that occur in predictions or targets, ``micro`` pools
            the counts of all, and ``each`` is a list with one score for each.
    """

    average: str = field(default="macro", validator=in_(AVERAGES))

    @abstractmethod
    def score(self, both: np.ndarray, said: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the score, from true positives ``both``, predictions ``said`` and true labels ``right``."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return true positives, predictions and true labels by class: int32 ``(3, classes)``."""
        said, right = said_and_right(prediction, targets)
        counts = f.stack(*(f.sum(rows, axis=0) for rows in (said * right, said, right)))
        single = len(prediction.shape) == 1 or prediction.shape[1] == 1
        return f.cast(f.narrow(counts, 1, 1, 2) if single else counts, "int32")

    def value(self, totals: np.ndarray, rows: int) -> Any:
        """Return the average, or a list with one score per class."""
        both, said, right = np.asarray(totals, np.float64)
        if self.average == "micro":
            return float(self.score(both.sum(), said.sum(), right.sum()))
        scores, known = self.score(both, said, right), (said + right) > 0
        if self.average == "each":
            return [float(score) for score in scores]
        return float(scores[known].mean()) if known.any() else 0.0


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``a / b``, and 0 where ``b`` is 0."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a, np.float64), where=b != 0))


def named(metric: str, average: str) -> str:
    """Return the name under which a metric is published: its own, with the average appended if not ``macro``."""
    return metric if average == "macro" else f"{metric}_{average}"
