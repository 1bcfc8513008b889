"""Measure precision and recall at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import AVERAGES, ClassMetric, named, ratio
from sigma_hooks.evaluate import Evaluate
from sigma_kernel.contracts import Metric
from sigma_kernel.settings import in_


@frozen
class F1Metric(ClassMetric):
    """The harmonic mean of precision and recall."""

    def score(self, both: np.ndarray, said: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the f1 from the counts."""
        return ratio(2.0 * both, said + right)


@define(eq=False, kw_only=True)
class F1(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.f1``; or ``<on>.f1_<average>``, if that is not ``macro``."""

    average: str = field(default="macro", validator=in_(AVERAGES))

    def measured(self) -> Mapping[str, Metric]:
        """Return the f1 beside the metrics that were asked for."""
        return {named("f1", self.average): F1Metric(self.average), **self.metrics}
