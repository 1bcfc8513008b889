"""Measure how often a classifier is right when it names a class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import AVERAGES, ClassMetric, named, ratio
from sigma_hooks.evaluate import Evaluate
from sigma_kernel.contracts import Metric
from sigma_kernel.settings import in_


@frozen
class PrecisionMetric(ClassMetric):
    """The share of the samples said to be of a class that are."""

    def score(self, both: np.ndarray, said: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the precision from the counts."""
        return ratio(both, said)


@define(eq=False, kw_only=True)
class Precision(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.precision``; or ``<on>.precision_<average>``, if that is not ``macro``."""

    average: str = field(default="macro", validator=in_(AVERAGES))

    def measured(self) -> Mapping[str, Metric]:
        """Return the precision beside the metrics that were asked for."""
        return {named("precision", self.average): PrecisionMetric(self.average), **self.metrics}
