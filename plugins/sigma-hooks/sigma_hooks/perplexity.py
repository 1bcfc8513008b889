"""Evaluate the perplexity of a model of classes, such as of a language."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import flat_labels
from sigma_hooks.evaluate import Evaluate
from sigma_hooks.totals import WideTotals
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node
from sigma_kernel.settings import optional, whole


@frozen
class PerplexityMetric(WideTotals):
    """Perplexity: the exponential of the mean of ``-log p``, where p is the probability of a label.

    Predictions are probabilities ``(n, ..., classes)``, targets labels ``(n, ...)`` or ``(n, ..., 1)``, or
    distributions of the shape of the predictions.  It is infinite if a label has probability 0, and NaN if no label
    counts.  Jelinek, Mercer, Bahl and Baker, Perplexity: A Measure of the Difficulty of Speech Recognition Tasks, 1977.

    Args:
        ignore_index: Label that does not count, such as that of padding.
    """

    ignore_index: int | None = field(default=None, validator=optional(whole))

    called: ClassVar[str] = "perplexity"

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the sum of the negative logarithms, and the number of labels that count: ``(2,)``."""
        if targets.shape == prediction.shape and targets.shape[-1:] != (1,):
            shares = f.cast(targets, prediction.dtype)
            logs = f.sum(f.where(shares > 0.0, shares * f.log(prediction), 0.0), axis=-1)
            return f.stack(-f.sum(logs), f.full(prod(logs.shape), (), logs.dtype))
        labels = flat_labels(self.called, prediction, targets)
        own = f.one_hot(labels, prediction.shape[-1], "bool")
        logs = f.log(f.sum(f.where(own, prediction, 0.0), axis=-1))
        counted = f.cast(f.ones(labels.shape), logs.dtype)
        if self.ignore_index is not None:
            ignored = f.equal(labels, self.ignore_index)
            logs, counted = f.where(ignored, 0.0, logs), f.where(ignored, 0.0, counted)
        return f.stack(-f.sum(logs), f.sum(counted))

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the perplexity."""
        total, count = np.asarray(totals, np.float64)
        with np.errstate(over="ignore"):
            return float(np.exp(total / count)) if count else float("nan")


@define(eq=False, kw_only=True)
class Perplexity(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.perplexity``.

    Args:
        ignore_index: Label that does not count, such as that of padding.
    """

    ignore_index: int | None = field(default=None, validator=optional(whole))

    def measured(self) -> Mapping[str, Metric]:
        """Return the perplexity and the configured metrics."""
        return {"perplexity": PerplexityMetric(self.ignore_index), **self.metrics}
