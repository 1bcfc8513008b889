"""Top-k accuracy as a metric: totals over rows that can be merged."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import ClassVar

import numpy as np
from attrs import field, frozen

from sigma_hooks.classes import are_classes, are_shares, check_classes, flat_labels
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Node
from sigma_kernel.settings import ge, optional, whole


@frozen
class AccuracyMetric(Metric):
    """Top-k accuracy: the share of labels whose class is among the ``top`` highest scores.

    Predictions have shape ``(n, ..., classes)``, targets are class indices ``(n, ...)`` or ``(n, ..., 1)``, or one-hot
    or other shares of the shape of the predictions: each class with the greatest share is right.  Of equal scores the
    first ranks higher; a NaN score is never right.  Predictions of shape ``(n, ..., 1)`` or ``(n,)`` are probabilities
    of class 1, compared with one half; their targets are 1 for yes, and 0 or -1 for no.  It is NaN if no label counts.

    Raises SigmaDataError if targets are not classes, and SigmaConfigError if ``top`` exceeds the number of classes.

    Args:
        top: Number of highest scores among which the class must be.
        ignore_index: Label that does not count, such as that of padding; not for targets that are shares.
    """

    better: ClassVar[str] = "higher"
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
        right = self._binary(prediction, targets) if binary else self._is_in_top(prediction, targets, shares)
        mask = are_shares(targets) if shares else are_classes(targets, prediction.shape[-1])
        counted = f.cast(f.ones(right.shape), prediction.dtype)
        number = f.where(mask, f.cast(right, prediction.dtype), nan)
        if self.ignore_index is not None and not shares:
            ignored = f.equal(targets, float(self.ignore_index))
            number, counted = f.where(ignored, 0.0, number), f.where(ignored, 0.0, counted)
        return f.stack(f.sum(number), f.sum(counted))

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the share of right labels."""
        right, counted = np.asarray(totals, np.float64)
        check_classes("accuracy", isnan(right))
        return float(right / counted) if counted else nan

    def _binary(self, prediction: Node, wanted: Node) -> Node:
        probability = f.reshape(prediction, wanted.shape)
        said, true = (f.cast(f.greater(x, 0.5), "int32") for x in (probability, wanted))
        return f.logical_and(f.equal(said, true), f.equal(probability, probability))

    def _is_in_top(self, scores: Node, targets: Node, shares: bool) -> Node:
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
