"""Evaluate the F1 score of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import AVERAGES, ClassMetric, metric_name, ratio
from sigma_hooks.evaluate import Evaluate
from sigma_kernel.contracts import Metric
from sigma_kernel.settings import in_, optional, whole


@frozen
class F1Metric(ClassMetric):
    """F1 score: the harmonic mean of precision and recall."""

    called: ClassVar[str] = "f1"

    def score(self, both: np.ndarray, said: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the F1 score."""
        return ratio(2.0 * both, said + right)


@define(eq=False, kw_only=True)
class F1(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.f1``, or ``<on>.f1_<average>`` if ``average`` is not ``macro``.

    Args:
        average: Over classes: the mean over those that occur, the pooled counts of all, or a list with one score for
            each.
        ignore_index: Label that does not count, such as that of padding.
    """

    average: str = field(default="macro", validator=in_(AVERAGES))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the F1 score and the configured metrics."""
        return {metric_name("f1", self.average): F1Metric(self.average, self.ignore_index), **self.metrics}
