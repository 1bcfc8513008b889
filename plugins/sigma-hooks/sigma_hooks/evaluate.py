"""Evaluate loss and metrics on a split of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Metric, Outlook


@define(eq=False, kw_only=True)
class Evaluate(Hook):
    """Publish ``<on>.loss`` and ``<on>.<name>`` for each metric, over all rows of the split ``on``.

    If there are several costs, each is published as ``<on>.cost.<layer>``.  If an ``output`` is named, metrics are
    published as ``<on>.<output>.<name>``.

    Args:
        on: Split of the data to measure on.
        output: Output to measure, or a pattern of several, such as ``*``; needed if there are several.
        metrics: Metrics to measure, by name.
    """

    every: TimeStep = every(1, "epoch")
    on: str = "validation"
    output: str | None = None
    metrics: Mapping[str, Metric] = field(factory=dict)

    @property
    def splits(self) -> Sequence[str]:
        """Return the split to evaluate on."""
        return [self.on]

    @property
    def writes(self) -> Sequence[str]:
        """Return the addresses of the loss, the costs and the metrics."""
        return [f"{self.on}.{name}" for name in ("loss", *self._placed(), "cost.*")]

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics by the names under which they are published."""
        return self.metrics

    def check(self, outlook: Outlook) -> None:
        """Raise a SigmaError if a metric does not fit the network."""
        outlook.measure(self._placed())

    def fire(self, context: HookContext) -> None:
        """Evaluate and publish."""
        for name, value in context.evaluate(self.on, self._placed()).items():
            context.publish(f"{self.on}.{name}", value)

    def _placed(self) -> Mapping[str, Metric]:
        """Return the metrics by the names that place them at an output."""
        head = f"{self.output}." if self.output else ""
        return {f"{head}{name}": metric for name, metric in self.measured().items()}
