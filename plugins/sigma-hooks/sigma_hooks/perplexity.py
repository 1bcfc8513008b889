"""Evaluate the perplexity of a model of classes, such as of a language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import check_classes, truth
from sigma_hooks.evaluate import Evaluate
from sigma_hooks.scores import log_probabilities, log_probability
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import optional, whole


@frozen
class PerplexityMetric(Metric):
    """Perplexity: the exponential of the mean of ``-log p``, where p is the probability of a label.

    Predictions are probabilities ``(n, ..., classes)``, targets labels ``(n, ...)`` or ``(n, ..., 1)``, or
    distributions of the shape of the predictions.  Logarithms of a softmax are computed from its logits, so that no
    probability is rounded to 0.  It is infinite if a label has probability 0, and NaN if no label counts.  Jelinek,
    Mercer, Bahl and Baker, Perplexity: A Measure of the Difficulty of Speech Recognition Tasks, 1977.

    Raises SigmaNetworkError for a single number in place of the probabilities, and SigmaDataError if targets are not
    classes.

    Args:
        ignore_index: Label that does not count, such as that of padding.
    """

    better: ClassVar[str] = "lower"
    ignore_index: int | None = field(default=None, validator=optional(whole))

    called: ClassVar[str] = "perplexity"

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the sum of the negative logarithms, and the numbers of labels that count and that are wrong."""
        if len(prediction.shape) < 2 or prediction.shape[-1] == 1:
            raise SigmaNetworkError(
                f"{self.called}: predictions have shape {prediction.shape}, one number for each label; expected "
                "(n, ..., classes), the probability of each class. Give the output as many units as there are classes, "
                "and softmax_cross_entropy; for numbers, use a regression metric."
            )
        true = truth(self.called, prediction, targets, self.ignore_index)
        if targets.shape == prediction.shape:
            shares = f.cast(targets, prediction.dtype)
            logs = f.sum(f.where(shares > 0.0, shares * log_probabilities(prediction), 0.0), axis=-1)
        else:
            logs = f.where(true.counted, log_probability(prediction, true.index), 0.0)
        return f.stack(
            -f.sum(logs), *(f.cast(x, logs.dtype) for x in (f.sum(f.cast(true.counted, "int32")), true.wrong))
        )

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the perplexity."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.mean(totals)))

    def mean(self, totals: np.ndarray) -> float:
        """Return the mean of ``-log p``; NaN if no label counts."""
        total, count, wrong = np.asarray(totals, np.float64)
        check_classes(self.called, bool(wrong))
        return float(total / count) if count else float("nan")


@define(eq=False, kw_only=True)
class Perplexity(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.perplexity``.

    Args:
        ignore_index: Label that does not count, such as that of padding.
    """

    ignore_index: int | None = field(default=None, validator=optional(whole))

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the perplexity and the configured metrics."""
        return {"perplexity": PerplexityMetric(self.ignore_index), **self.metrics}
