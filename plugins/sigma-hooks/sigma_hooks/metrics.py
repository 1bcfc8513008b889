"""Top-k accuracy as a metric: totals over rows that can be merged."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np
from attrs import field, frozen

from sigma_hooks.classes import labels
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import ge


@frozen
class AccuracyMetric(Metric):
    """Top-k accuracy: the share of samples whose class is among the ``top`` highest scores.

    Predictions have shape ``(n, classes)``, targets are class indices ``(n,)`` or ``(n, 1)``, or one-hot or other
    shares ``(n, classes)``: each class with the greatest share is right.  Of equal scores the first ranks higher; a NaN
    score is never right.  Predictions of shape ``(n, 1)`` or ``(n,)`` are
    probabilities of class 1, compared with one half.

    Raises SigmaDataError if targets are not classes, and SigmaConfigError if ``top`` exceeds the number of classes.

    Args:
        top: Number of highest scores among which the class must be.
    """

    top: int = field(default=1, validator=ge(1))

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the number of correct samples, in the predictions' dtype; NaN if targets are not classes."""
        binary = len(prediction.shape) == 1 or prediction.shape[1:] == (1,)
        classes = 1 if binary else prediction.shape[1]
        if self.top > classes:
            raise SigmaConfigError(
                f"accuracy: top = {self.top}, but the output has {classes} classes. Choose a smaller one."
            )
        if binary:
            right = self._binary(f.reshape(prediction, shape=(prediction.shape[0],)), targets)
        else:
            targets = labels(targets)
            right = self._ranked(prediction, targets)
        number = f.cast(right, dtype=prediction.dtype)
        return f.sum(f.where(_are_classes(targets, binary), number, nan), axis=0)

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the share of correct rows."""
        if isnan(totals):
            raise SigmaDataError(
                "accuracy: the targets are not classes. Give indices, 0 or 1, or one-hot rows; "
                "for numbers, use a regression metric."
            )
        return float(totals) / rows

    def _binary(self, probability: Node, targets: Node) -> Node:
        wanted = f.cast(f.reshape(targets, shape=probability.shape), dtype=probability.dtype)
        said = f.cast(f.greater(probability, 0.5), dtype=probability.dtype)
        return f.logical_and(f.equal(said, wanted), f.equal(probability, probability))

    def _ranked(self, scores: Node, targets: Node) -> Node:
        if len(scores.shape) != 2:
            raise SigmaNetworkError(f"accuracy: predictions have shape {scores.shape}; expected (n, classes).")
        rows, classes = scores.shape
        place = f.iota(shape=(rows, classes), axis=1, dtype="int32")
        if len(targets.shape) == 2:
            wanted = f.greater_equal(targets, f.max(targets, axis=1, keepdims=True))
        else:
            wanted = f.equal(place, f.reshape(f.cast(targets, dtype="int32"), shape=(rows, 1)))
        own = f.max(f.where(wanted, scores, -inf), axis=1, keepdims=True)
        first = f.argmax(f.cast(f.logical_and(wanted, f.equal(scores, own)), "int32"), axis=1, keepdims=True)
        tied_before = f.logical_and(f.equal(scores, own), f.greater(first, place))
        better = f.logical_or(f.logical_not(f.greater_equal(own, scores)), tied_before)
        rank = f.sum(f.cast(better, dtype="int32"), axis=1)
        return f.greater(self.top, rank)


def _are_classes(targets: Node, binary: bool) -> Node:
    """Return for each row whether its target is a class: an index (0 or 1 if ``binary``), or shares that sum to 1."""
    rows = targets.shape[0]
    if len(targets.shape) == 2 and not binary:
        shares = f.cast(targets, dtype="float32")
        total = f.sum(shares, axis=1)
        positive = f.greater_equal(f.min(shares, axis=1), 0.0)
        return f.logical_and(positive, f.logical_and(f.greater(total, 0.99), f.greater(1.01, total)))
    number = f.cast(f.reshape(targets, shape=(rows,)), dtype="float32")
    if binary:
        return f.logical_or(f.equal(number, 0.0), f.equal(number, 1.0))
    return f.logical_and(f.greater_equal(number, 0.0), f.equal(number, f.floor(number)))
