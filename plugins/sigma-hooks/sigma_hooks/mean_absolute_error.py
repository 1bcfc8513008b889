"""Evaluate the mean absolute error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, frozen

from sigma_hooks.evaluate import Evaluate
from sigma_hooks.regression import like, per_row
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node


@frozen
class MeanAbsoluteErrorMetric(Metric):
    """Mean absolute error: the mean of ``|prediction - target|``, in units of the target."""

    better: ClassVar[str] = "lower"

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the sum over rows, each the mean over its outputs."""
        return per_row(f.abs(prediction - like(prediction, targets)))


@define(eq=False, kw_only=True)
class MeanAbsoluteError(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.mean_absolute_error``."""

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the error and the configured metrics."""
        return {"mean_absolute_error": MeanAbsoluteErrorMetric(), **self.metrics}
