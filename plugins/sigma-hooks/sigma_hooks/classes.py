"""What a classifier said and what was right, counted by class."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node
from sigma_kernel.settings import in_

AVERAGES = ("macro", "micro", "each")


def said_and_right(prediction: Node, targets: Node) -> tuple[Node, Node]:
    """Return the class with the best score and the class that was right, each as one-hot rows ``(n, classes)``.

    Of equal scores the first one counts; rows with a score that is not a number say nothing.  Predictions of shape
    ``(n, 1)`` or ``(n,)`` are probabilities of class 1 of two.  Targets are class indices ``(n,)`` or one-hot rows.
    """
    if len(prediction.shape) == 1 or prediction.shape[1:] == (1,):
        flat = f.reshape(prediction, (prediction.shape[0],))
        said = _rows(f.cast(f.greater(flat, 0.5), "int32"), 2, prediction, flat)
        return said, _rows(f.cast(f.reshape(targets, flat.shape), "int32"), 2, prediction)
    if len(prediction.shape) != 2:
        raise SigmaNetworkError(f"metrics of classes: predictions have shape {prediction.shape}; take (n, classes).")
    right = f.argmax(targets, axis=1) if len(targets.shape) == 2 else f.cast(targets, "int32")
    worst = f.min(prediction, axis=1) + f.max(prediction, axis=1)  # not a number if any score is not
    said = _rows(f.argmax(prediction, axis=1), prediction.shape[1], prediction, worst)
    return said, _rows(right, prediction.shape[1], prediction)


def _rows(labels: Node, classes: int, prediction: Node, score: Node | None = None) -> Node:
    rows = f.one_hot(labels, classes, prediction.dtype)
    return rows if score is None else f.where(f.expand(f.equal(score, score), 1), rows, 0.0)


@frozen
class ClassMetric(Metric):
    """A number for each class, of how often it was said, right, and both.

    ``macro`` is the mean over the classes that were said or right at all, ``micro`` counts all classes together, and
    ``each`` is a list.  A ratio whose denominator is 0 is 0.  Of a single probability, class 1 alone is counted.  All
    of it as scikit-learn has it.
    """

    average: str = field(default="macro", validator=in_(AVERAGES))

    @abstractmethod
    def score(self, both: np.ndarray, said: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the number from the counts."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return how often each class was said and right, was said, and was right: int32 ``(3, classes)``."""
        said, right = said_and_right(prediction, targets)
        counts = f.stack(*(f.sum(rows, axis=0) for rows in (said * right, said, right)))
        single = len(prediction.shape) == 1 or prediction.shape[1] == 1
        return f.cast(f.narrow(counts, 1, 1, 2) if single else counts, "int32")

    def value(self, totals: np.ndarray, rows: int) -> Any:
        """Return the average, or a list with a number for each class."""
        both, said, right = np.asarray(totals, np.float64)
        if self.average == "micro":
            return float(self.score(both.sum(), said.sum(), right.sum()))
        scores, known = self.score(both, said, right), (said + right) > 0
        if self.average == "each":
            return [float(score) for score in scores]
        return float(scores[known].mean()) if known.any() else 0.0


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``a / b``, and 0 where b is 0."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a, np.float64), where=b != 0))


def named(metric: str, average: str) -> str:
    """Return the name under which a metric is published: its own, or with the average that is not the usual one."""
    return metric if average == "macro" else f"{metric}_{average}"
