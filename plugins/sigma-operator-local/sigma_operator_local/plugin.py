"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the local operator and of what merges its shards."""
    return [
        Component(
            "operator",
            "local",
            "sigma_operator_local.local:LocalOperator",
            "Train on this machine, in bursts; with workers and shards.",
        ),
        Component("merger", "sum", "sigma_operator_local.shards:Sum", "Add the gradients of shards up."),
    ]
