"""Top-k accuracy as a metric: totals over rows that can be merged."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np
from attrs import field, frozen

from sigma_hooks.classes import flat_labels
from sigma_hooks.totals import WideTotals
from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.graph import Node
from sigma_kernel.settings import ge, optional, whole


@frozen
class AccuracyMetric(WideTotals):
    """Top-k accuracy: the share of labels whose class is among the ``top`` highest scores.

    Predictions have shape ``(n, ..., classes)``, targets are class indices ``(n, ...)`` or ``(n, ..., 1)``, or one-hot
    or other shares of the shape of the predictions: each class with the greatest share is right.  Of equal scores the
    first ranks higher; a NaN score is never right.  Predictions of shape ``(n, ..., 1)`` or ``(n,)`` are probabilities
    of class 1, compared with one half.  It is NaN if no label counts.

    Raises SigmaDataError if targets are not classes, and SigmaConfigError if ``top`` exceeds the number of classes.

    Args:
        top: Number of highest scores among which the class must be.
        ignore_index: Label that does not count, such as that of padding; not for targets that are shares.
    """

    top: int = field(default=1, validator=ge(1))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the numbers of right labels and of those that count, ``(2,)``; NaN if targets are not classes."""
        if len(prediction.shape) == 1:
            prediction = f.expand(prediction, 1)
        if self.top > prediction.shape[-1]:
            raise SigmaConfigError(
                f"accuracy: top = {self.top}, but the output has {prediction.shape[-1]} classes. Choose a smaller one."
            )
        binary = prediction.shape[-1] == 1
        shares = targets.shape == prediction.shape and not binary
        targets = targets if shares else flat_labels("accuracy", prediction, targets, prediction.dtype)
        right = self._binary(prediction, targets) if binary else self._ranked(prediction, targets, shares)
        known = _are_shares(targets) if shares else _are_classes(targets, binary)
        counted = f.cast(f.ones(right.shape), prediction.dtype)
        number = f.where(known, f.cast(right, prediction.dtype), nan)
        if self.ignore_index is not None and not shares:
            ignored = f.equal(targets, float(self.ignore_index))
            number, counted = f.where(ignored, 0.0, number), f.where(ignored, 0.0, counted)
        return f.stack(f.sum(number), f.sum(counted))

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the share of right labels."""
        right, counted = np.asarray(totals, np.float64)
        if isnan(right):
            raise SigmaDataError(
                "accuracy: the targets are not classes. Give indices, 0 or 1, or one-hot rows, and ignore_index for a "
                "label that does not count; for numbers, use a regression metric."
            )
        return float(right / counted) if counted else nan

    def _binary(self, prediction: Node, wanted: Node) -> Node:
        probability = f.reshape(prediction, wanted.shape)
        said = f.cast(f.greater(probability, 0.5), dtype=probability.dtype)
        return f.logical_and(f.equal(said, wanted), f.equal(probability, probability))

    def _ranked(self, scores: Node, targets: Node, shares: bool) -> Node:
        place = f.iota(shape=scores.shape, axis=-1, dtype="int32")
        if shares:
            wanted = f.greater_equal(targets, f.max(targets, axis=-1, keepdims=True))
        else:
            wanted = f.equal(place, f.expand(f.cast(targets, dtype="int32"), -1))
        own = f.max(f.where(wanted, scores, -inf), axis=-1, keepdims=True)
        first = f.argmax(f.cast(f.logical_and(wanted, f.equal(scores, own)), "int32"), axis=-1, keepdims=True)
        tied_before = f.logical_and(f.equal(scores, own), f.greater(first, place))
        better = f.logical_or(f.logical_not(f.greater_equal(own, scores)), tied_before)
        rank = f.sum(f.cast(better, dtype="int32"), axis=-1)
        return f.greater(self.top, rank)


def _are_shares(targets: Node) -> Node:
    """Return for each row whether it holds shares that sum to 1."""
    shares = f.cast(targets, dtype="float32")
    total = f.sum(shares, axis=-1)
    positive = f.greater_equal(f.min(shares, axis=-1), 0.0)
    return f.logical_and(positive, f.logical_and(f.greater(total, 0.99), f.greater(1.01, total)))


def _are_classes(number: Node, binary: bool) -> Node:
    """Return for each label whether it is an index, 0 or 1 if ``binary``."""
    if binary:
        return f.logical_or(f.equal(number, 0.0), f.equal(number, 1.0))
    return f.logical_and(f.greater_equal(number, 0.0), f.equal(number, f.floor(number)))
