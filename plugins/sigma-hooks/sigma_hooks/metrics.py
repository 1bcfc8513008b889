"""Metrics: numbers about predictions, as totals over rows that can be merged."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge

from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node


@frozen
class AccuracyMetric(Metric):
    """The share of samples whose class is among the ``top`` best scores.

    Predictions have shape ``(n, classes)``, targets are class indices ``(n,)`` or one-hot ``(n, classes)``.  Of equal
    scores the first counts as the better one; a score that is not a number is never right.  A prediction of shape
    ``(n, 1)`` or ``(n,)`` is the probability of class 1, right if it lies on the right side of one half.
    """

    top: int = field(default=1, validator=ge(1))

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the number of samples that are right, a scalar of the predictions' dtype."""
        if len(prediction.shape) == 1 or prediction.shape[1:] == (1,):
            right = self._binary(f.reshape(prediction, shape=(prediction.shape[0],)), targets)
        else:
            right = self._ranked(prediction, targets)
        return f.sum(f.cast(right, dtype=prediction.dtype), axis=0)

    def _binary(self, probability: Node, targets: Node) -> Node:
        wanted = f.cast(f.reshape(targets, shape=probability.shape), dtype=probability.dtype)
        return f.equal(f.cast(f.greater(probability, 0.5), dtype=probability.dtype), wanted)

    def _ranked(self, scores: Node, targets: Node) -> Node:
        if len(scores.shape) != 2:
            raise SigmaNetworkError(f"accuracy: predictions have shape {scores.shape}; it takes (n, classes).")
        rows, classes = scores.shape
        index = f.argmax(targets, axis=1) if len(targets.shape) == 2 else targets
        place = f.iota(shape=(rows, classes), axis=1, dtype="int32")
        wanted = f.stretch(f.reshape(index, shape=(rows, 1)), shape=(rows, classes))
        own = f.sum(f.where(f.equal(place, wanted), scores, 0.0), axis=1, keepdims=True)
        tied_before = f.logical_and(f.equal(scores, own), f.greater(wanted, place))
        better = f.logical_or(f.logical_not(f.greater_equal(own, scores)), tied_before)
        rank = f.sum(f.cast(better, dtype="int32"), axis=1)
        return f.greater(self.top, rank)
