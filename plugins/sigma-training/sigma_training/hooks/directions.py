"""Which values at an address are better, as the metric says that is published there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sigma_kernel.contracts import Hook, Metric
from sigma_kernel.plugins.resolver import resolve_components
from sigma_kernel.registry.addresses import matches
from sigma_step.model import Model


def published_directions(hooks: Iterable[Hook], model: Model) -> dict[str, str]:
    """Return which values of the metrics of a trainer and of its hooks are better, or "undeclared".

    They are by the address, or pattern, at which the metrics are published.
    """
    metrics = {f"training.{name}": metric for name, metric in model.metrics.items()}
    for hook in hooks:
        metrics |= resolve_components(model.resolve, "metrics", Metric, dict(hook.metrics_by_address))
    return {address: metric.better or "undeclared" for address, metric in metrics.items()}


def find_direction(address: str, directions: Mapping[str, str]) -> str:
    """Return "higher", "lower", "neither", "undeclared" by the metric there; "" if there is neither one nor a loss.

    An address that contains that of a metric, such as ``accumulated.validation.accuracy.mean``, has its direction.
    """
    parts = address.split(".")
    runs = [".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]
    for run in sorted(runs, key=len, reverse=True):
        for pattern, direction in directions.items():
            if matches(pattern, run):
                return direction
    return "" if {"loss", "cost"}.isdisjoint(parts) else "lower"
