"""Expose the numbers of a run to Prometheus, as gauges by address."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from sigma_kernel.contracts import View

STATES = (
    "created", "prepared", "compiling", "running", "paused", "finished", "stopped", "pruned", "interrupted", "failed"
)  # fmt: skip
NUMBERS = ("number", "whole", "flag")


class Collector:
    """Collect the current values of a view."""

    def __init__(self, view: View) -> None:
        self.view = view

    def collect(self) -> Iterator[Metric]:
        """Yield the state of the run, and its numbers by address."""
        state, now = GaugeMetricFamily("sigma_run_state", "1 for the current state.", labels=["run", "state"]), None
        now = self.view.status()
        for name in STATES:
            state.add_metric([self.view.name, name], float(name == now))
        yield state
        values = GaugeMetricFamily("sigma_value", "A number of the run, by address.", labels=["run", "address"])
        for entry in self.view.entries():
            if entry.type in NUMBERS and isinstance(entry.value, bool | int | float):
                values.add_metric([self.view.name, entry.address], float(entry.value))
        yield values


def expose_view(view: View) -> tuple[bytes, str]:
    """Return the exposition of a view, and its media type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(view))
    return generate_latest(registry), CONTENT_TYPE_LATEST
