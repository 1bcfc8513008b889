"""Evaluate loss and metrics on a split of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Media, Metric, Outlook
from sigma_kernel.settings import instance_of


@define(eq=False, kw_only=True)
class Evaluate(Hook):
    """Publish ``<on>.loss`` and ``<on>.<name>`` for each metric, over all rows of the split ``on``.

    If there are several costs, each is published as ``<on>.cost.<layer>``.  If an ``output`` is named, metrics are
    published as ``<on>.<output>.<name>``.  With the ``weights`` of a modifier, such as ``average``, all are
    ``<on>.<weights>.<name>``.

    Args:
        on: Split of the data to measure on.
        output: Output to measure, or a pattern of several, such as ``*``; needed if there are several.
        metrics: Metrics to measure, by name.
        weights: Modifier whose weights are evaluated in place of the parameters.
    """

    every: TimeStep = every(1, "epoch")
    on: str = "validation"
    output: str | None = None
    metrics: Mapping[str, Metric] = field(factory=dict)
    weights: str = field(default="", validator=instance_of(str, "the name of a modifier"))

    @property
    def splits(self) -> Sequence[str]:
        """Return the split to evaluate on."""
        return [self.on]

    @property
    def writes(self) -> Sequence[str]:
        """Return the addresses of the loss, the costs and the metrics."""
        return [f"{self._head}.{name}" for name in ("loss", *self._metrics_at_output(), "cost.*")]

    @property
    def metrics_by_address(self) -> Mapping[str, Metric]:
        """Return the metrics by their addresses."""
        return {f"{self._head}.{name}": metric for name, metric in self._metrics_at_output().items()}

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics by the names under which they are published."""
        return self.metrics

    def check(self, outlook: Outlook) -> None:
        """Raise a SigmaError if a metric does not fit the network."""
        outlook.measure(self._metrics_at_output())

    def fire(self, context: HookContext) -> None:
        """Evaluate and publish."""
        for name, value in context.evaluate(self.on, self._metrics_at_output()).items():
            context.publish(f"{self._head}.{name}", value)
            if (media := self.show(name, value)) is not None:
                context.publish(f"{self._head}.{name}", media)

    def show(self, name: str, value: Any) -> Media | None:
        """Return the value of a metric as media, beside the numbers; by default none."""
        return None

    @property
    def _head(self) -> str:
        return f"{self.on}.{self.weights}" if self.weights else self.on

    def _metrics_at_output(self) -> Mapping[str, Metric]:
        """Return the metrics by the names that place them at an output."""
        head = f"{self.output}." if self.output else ""
        return {f"{head}{name}": metric for name, metric in self.named_metrics().items()}
