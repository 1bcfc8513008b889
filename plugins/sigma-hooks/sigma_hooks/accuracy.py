"""Evaluate the (top-k) accuracy of a classifier."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_hooks.evaluate import Evaluate
from sigma_hooks.metrics import AccuracyMetric
from sigma_kernel.contracts import Metric
from sigma_kernel.settings import ge, optional, whole


@define(eq=False, kw_only=True)
class Accuracy(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.accuracy``, or ``<on>.accuracy_top<k>`` if ``top`` is above 1.

    Args:
        top: Number of highest scores among which the class must be.
        ignore_index: Label that does not count, such as that of padding.
    """

    top: int = field(default=1, validator=ge(1))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the accuracy and the configured metrics."""
        name = "accuracy" if self.top == 1 else f"accuracy_top{self.top}"
        return {name: AccuracyMetric(self.top, self.ignore_index), **self.metrics}
