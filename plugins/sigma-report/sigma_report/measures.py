"""Measures of predictions, as pure functions of arrays: classes, rankings, calibration, numbers.

Undefined values are NaN: the precision of a class that was never predicted, the area of a class that is absent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.settings import brief

Array = np.ndarray
COLDEST, HOTTEST = 0.01, 100.0  # temperatures


# -- classes -----------------------------------------------------------------------------------------------------------
def confusion_matrix(truth: Array, predicted: Array, count: int) -> Array:
    """Return how many rows of each true class (axis 0) were predicted as each class (axis 1), int64 ``(count, count)``.

    ``truth`` and ``predicted`` are indices of classes, ``(n,)``.
    """
    return np.asarray(np.bincount(truth * count + predicted, minlength=count**2).reshape(count, count))


@frozen(eq=False)
class ClassScores:
    """Precision, recall, F1 and number of rows of each class, arrays ``(classes,)``."""

    precision: Array
    recall: Array
    f1: Array
    support: Array

    __repr__ = brief

    def average(self, weighted: bool = False) -> dict[str, float]:
        """Return the means of the defined values over classes, or weighted by the number of their rows."""
        weights = self.support if weighted else np.ones(len(self.support))
        columns = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {name: _mean_of_defined(values, weights) for name, values in columns.items()}


def class_scores(matrix: Array) -> ClassScores:
    """Return the scores of each class of a confusion matrix."""
    hits, predicted, support = np.diagonal(matrix), matrix.sum(axis=0), matrix.sum(axis=1)
    return ClassScores(_ratio(hits, predicted), _ratio(hits, support), _ratio(2 * hits, predicted + support), support)


def _ratio(part: Any, total: Any) -> Array:
    """Return the quotients; NaN where the divisor is 0."""
    part, total = np.broadcast_arrays(np.asarray(part, float), np.asarray(total, float))
    return np.asarray(np.divide(part, total, out=np.full(total.shape, np.nan), where=total != 0))


def _mean_of_defined(values: Array, weights: Array) -> float:
    there = ~np.isnan(values)
    return float(_ratio((values[there] * weights[there]).sum(), weights[there].sum()))


# -- rankings ----------------------------------------------------------------------------------------------------------
def _ranked_counts(positive: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Return true positives, false positives and thresholds, from the greatest score on; equal scores are one step."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.zeros(0, int)
    hits = np.cumsum(positive[order])[ends]
    return hits, ends + 1 - hits, ranked[ends]


def roc_curve(positive: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Return false positive rates, true positive rates and thresholds, from (0, 0) at infinity to (1, 1).

    ``positive`` is boolean, ``scores`` finite, both ``(n,)``.
    """
    hits, misses, thresholds = _ranked_counts(positive, scores)
    rates = [_ratio(counts, counts[-1:].sum()) for counts in (np.append(0, misses), np.append(0, hits))]
    return rates[0], rates[1], np.append(np.inf, thresholds)


def roc_area(positive: Array, scores: Array) -> float:
    """Return the area under the ROC curve: the probability that a positive row has a greater score than a negative."""
    x, y, _ = roc_curve(positive, scores)
    return float(np.trapezoid(y, x))


def precision_recall_curve(positive: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Return precision, recall and thresholds, from recall 0 at infinity on, where precision is set to 1."""
    hits, misses, thresholds = _ranked_counts(positive, scores)
    recall = _ratio(np.append(0, hits), hits[-1:].sum())
    return np.append(1.0, _ratio(hits, hits + misses)), recall, np.append(np.inf, thresholds)


def average_precision(positive: Array, scores: Array) -> float:
    """Return the sum of precisions, each weighted by the rise of recall; it is not interpolated."""
    precision, recall, _ = precision_recall_curve(positive, scores)
    return float((np.diff(recall) * precision[1:]).sum())


# -- calibration -------------------------------------------------------------------------------------------------------
@frozen(eq=False)
class Reliability:
    """Bins of equal width of confidences: rows, mean confidence and share of hits, ``(bins,)``; NaN if empty."""

    edges: Array
    counts: Array
    confidence: Array
    hits: Array

    __repr__ = brief

    @property
    def error(self) -> float:
        """Return the expected calibration error: the mean over rows of what confidence and hits of a bin differ by."""
        gaps = np.abs(self.confidence - self.hits)
        return _mean_of_defined(gaps, self.counts)


def reliability(confidence: Array, hit: Array, bins: int = 10) -> Reliability:
    """Return the bins of confidences in 0..1 and of whether each was a hit; a bin includes its upper edge."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    places = np.searchsorted(edges[1:-1], confidence)
    counts = np.bincount(places, minlength=bins)
    sums = (np.bincount(places, weights=values, minlength=bins) for values in (confidence, hit))
    return Reliability(edges, counts, *(_ratio(total, counts) for total in sums))


def brier_score(truth: Array, probabilities: Array) -> float:
    """Return the mean squared distance of probabilities ``(n, classes)`` from the truth; half of it for two classes.

    It is 0 if perfect, and at most 1 for two classes, and 2 for more.
    """
    distance = probabilities - np.eye(probabilities.shape[1])[truth]
    return float((distance**2).sum(axis=1).mean() / (2 if probabilities.shape[1] == 2 else 1))


def log_losses(truth: Array, probabilities: Array) -> Array:
    """Return the negative logarithm of the probability of each row's true class; finite for 0 as well."""
    return np.asarray(-_log(probabilities)[np.arange(len(truth)), truth])


def _log(probabilities: Array) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, np.finfo(np.float32).tiny, dtype=float)))


def scale_probabilities(probabilities: Array, temperature: float) -> Array:
    """Return the softmax of the logarithms of probabilities ``(n, classes)``, divided by a temperature."""
    scores = _log(probabilities) / temperature
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fit_temperature(truth: Array, probabilities: Array, steps: int = 60) -> float:
    """Return the temperature with the least mean log loss, from 0.01 to 100 (Guo et al. 2017).

    The loss is convex in the inverse of the temperature, so its slope is bisected.  Perfect predictions have the lowest
    temperature.
    """
    scores = _log(probabilities)
    wanted = scores[np.arange(len(truth)), truth].mean()
    low, high = np.log(COLDEST), np.log(HOTTEST)
    for _ in range(steps):
        middle = (low + high) / 2
        expected = (scale_probabilities(probabilities, float(np.exp(middle))) * scores).sum(axis=1).mean()
        low, high = (low, middle) if expected <= wanted else (middle, high)
    return float(np.exp((low + high) / 2))


# -- numbers -----------------------------------------------------------------------------------------------------------
def regression_scores(truth: Array, predicted: Array) -> dict[str, Array]:
    """Return mean absolute error, root mean squared error and R squared of each column, ``(columns,)``.

    Both are ``(n, columns)``.  R squared is NaN if the true values of a column are all the same.
    """
    errors = predicted - truth
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    squares = (errors**2).sum(axis=0)
    mean = {
        "mean_absolute_error": np.abs(errors).mean(axis=0),
        "root_mean_squared_error": np.sqrt(squares / len(truth)),
    }
    return {**mean, "r_squared": 1 - _ratio(squares, spread)}


# -- importance --------------------------------------------------------------------------------------------------------
def permutation_scores(values: Array, places: Any, score: Any, repeats: int, key: np.random.Generator) -> Array:
    """Return a score as the values at ``places`` of the last axis move to other rows, ``(repeats,)``.

    ``score`` is a function of all values, whose rows are shuffled together at these places.
    """
    scores = []
    for _ in range(repeats):
        shuffled = values.copy()
        shuffled[..., places] = values[key.permutation(len(values))][..., places]
        scores.append(score(shuffled))
    return np.array(scores)
