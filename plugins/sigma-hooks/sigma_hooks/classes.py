"""Predicted and true classes of rows, sequences and pictures, their counts, and labels that are no classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_, optional, whole

AVERAGES = ("macro", "micro", "each")


@frozen
class Truth:
    """The true class of each place: its index, whether it counts, and whether it is a class or ignored; ``(n, ...)``.

    The index is int32, and 0 where the label does not count.
    """

    index: Node
    counted: Node
    known: Node

    @property
    def wrong(self) -> Node:
        """Return the number of labels that are neither classes nor ignored, an int32 scalar."""
        return f.sum(f.cast(f.logical_not(self.known), "int32"))


def truth(metric: str, scores: Node, targets: Node, ignore_index: int | None) -> Truth:
    """Return the true classes for scores ``(n, ..., classes)``, or ``(n, ..., 1)`` for a probability of class 1.

    Targets are class indices ``(n, ...)`` or ``(n, ..., 1)``, or one-hot rows or other shares of the shape of several
    scores, of which the greatest is the class.  SigmaNetworkError for other shapes.
    """
    if targets.shape == scores.shape and scores.shape[-1] > 1:
        return Truth(f.argmax(targets, axis=-1), f.ones(scores.shape[:-1], "bool"), are_shares(targets))
    labels = flat_labels(metric, scores, targets, scores.dtype)
    is_class, counted = are_classes(labels, scores.shape[-1]), f.ones(labels.shape, "bool")
    if ignore_index is not None:
        counted = f.not_equal(labels, float(ignore_index))
    index = f.where(f.logical_and(is_class, counted), f.maximum(labels, 0.0), 0.0)
    return Truth(f.cast(index, "int32"), counted, f.logical_or(is_class, f.logical_not(counted)))


def said_and_right(metric: str, prediction: Node, targets: Node, ignore_index: int | None) -> tuple[Node, Node, Node]:
    """Return the predicted and the true class of each place, and the number of labels that are no classes, int32.

    The classes are one-hot rows ``(places, classes)``, of zeros where the label does not count.  The first of equal
    scores wins; a NaN score predicts no class.  Predictions ``(n, ..., 1)`` or ``(n,)`` are probabilities of class 1 of
    two, and targets those of :func:`truth`.
    """
    prediction = f.expand(prediction, 1) if len(prediction.shape) == 1 else prediction
    true, single = truth(metric, prediction, targets, ignore_index), prediction.shape[-1] == 1
    scores, classes = f.reshape(prediction, (-1, prediction.shape[-1])), 2 if single else prediction.shape[-1]
    best = f.cast(f.greater(scores[:, 0], 0.5), "int32") if single else f.argmax(scores, axis=1)
    unknown = f.sum(f.cast(f.not_equal(scores, scores), "int32"), axis=1)
    counted = f.reshape(true.counted, best.shape)
    said = _rows(best, classes, f.logical_and(counted, f.equal(unknown, 0)))
    return said, _rows(f.reshape(true.index, best.shape), classes, counted), true.wrong


def _rows(index: Node, classes: int, counted: Node) -> Node:
    """Return one-hot rows, or zeros where the index does not count."""
    return f.where(f.expand(counted, 1), f.one_hot(index, classes, "int32"), 0)


def flat_labels(metric: str, prediction: Node, targets: Node, dtype: str) -> Node:
    """Return labels ``(n, ...)`` for predictions ``(n, ..., classes)``, of targets that may have a last axis of 1."""
    if targets.shape not in (prediction.shape[:-1], (*prediction.shape[:-1], 1)):
        remedy = "Put flatten() before the output." if len(prediction.shape) > 2 else "Give one label for each row."
        raise SigmaNetworkError(
            f"{metric}: predictions have shape {prediction.shape} and targets {targets.shape}; expected "
            f"{prediction.shape[:-1]}, one label for each row of scores. {remedy}"
        )
    return f.cast(f.reshape(targets, prediction.shape[:-1]), dtype)


def are_classes(labels: Node, classes: int) -> Node:
    """Return for each label whether it is an index below ``classes``; for one of them 1, or else 0 or -1."""
    below = f.logical_and(f.greater_equal(labels, 0.0), f.less(labels, float(classes)))
    if classes == 1:
        below = f.less_equal(f.abs(labels), 1.0)
    return f.logical_and(below, f.equal(labels, f.floor(labels)))


def are_shares(targets: Node) -> Node:
    """Return for each row along the last axis whether it holds shares that sum to 1."""
    shares = f.cast(targets, dtype="float32")
    total = f.sum(shares, axis=-1)
    positive = f.greater_equal(f.min(shares, axis=-1), 0.0)
    return f.logical_and(positive, f.logical_and(f.greater(total, 0.99), f.greater(1.01, total)))


def check_classes(metric: str, wrong: bool) -> None:
    """Raise SigmaDataError if some labels are ``wrong``: neither classes nor ignored."""
    if wrong:
        raise SigmaDataError(
            f"{metric}: the targets are not classes. Give indices below the number of classes, 0 or 1 for a single "
            "output, or one-hot rows, and ignore_index for a label that does not count; for several labels in a row, "
            "use threshold_accuracy or label_f1, and for numbers a regression metric."
        )


@frozen
class ClassMetric(Metric):
    """Score of each class, from the counts of predictions, true labels and true positives.

    Predictions ``(n, ..., classes)`` choose the class of the highest score, the first of equal ones, for each label
    ``(n, ...)`` or ``(n, ..., 1)``, or one-hot row; a NaN score predicts none.  Counts are pooled over all places.
    Predictions ``(n, ..., 1)`` or ``(n,)`` are probabilities of class 1, compared with one half, and only class 1 is
    scored; its targets are 1 for yes, and 0 or -1 for no.  A ratio with denominator 0 is 0.  Same as scikit-learn.

    Raises SigmaDataError if targets are not classes.

    Args:
        average: Over classes: ``macro`` is the mean over those that occur in predictions or targets, ``micro`` pools
            the counts of all, and ``each`` is a list with one score for each.
        ignore_index: Label that does not count, such as that of padding; not for targets that are one-hot.
    """

    better: ClassVar[str] = "higher"
    called: ClassVar[str]

    average: str = field(default="macro", validator=in_(AVERAGES))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    @abstractmethod
    def score(self, both: np.ndarray, said: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the score, from true positives ``both``, predictions ``said`` and true labels ``right``."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return true positives, predictions and true labels by class, and wrong labels: int32 ``(4, classes)``."""
        said, right, wrong = said_and_right(self.called, prediction, targets, self.ignore_index)
        single = len(prediction.shape) == 1 or prediction.shape[-1] == 1
        counts = f.stack(*(f.sum(rows, axis=0) for rows in (said * right, said, right)))
        counts = f.concat(counts, f.full(1, (1, counts.shape[1]), "int32") * wrong, axis=0)
        return f.narrow(counts, 1, 1, 2) if single else counts

    def value(self, totals: np.ndarray, rows: int) -> Any:
        """Return the average, or a list with one score per class."""
        both, said, right, wrong = np.asarray(totals, np.float64)
        check_classes(self.called, bool(wrong.any()))
        if self.average == "micro":
            return float(self.score(both.sum(), said.sum(), right.sum()))
        scores, mask = self.score(both, said, right), (said + right) > 0
        if self.average == "each":
            return [float(score) for score in scores]
        return float(scores[mask].mean()) if mask.any() else 0.0


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``a / b``, and 0 where ``b`` is 0."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a, np.float64), where=b != 0))


def metric_name(metric: str, average: str) -> str:
    """Return the name under which a metric is published: its own, with the average appended if not ``macro``."""
    return metric if average == "macro" else f"{metric}_{average}"
