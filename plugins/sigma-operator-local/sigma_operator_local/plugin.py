"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the local operator."""
    path = "sigma_operator_local.local:LocalOperator"
    return [Component("operator", "local", path, "Train on this machine, in bursts; with workers and shards.")]
