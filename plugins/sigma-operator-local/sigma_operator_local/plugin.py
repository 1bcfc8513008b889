"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the local operator and of the merger of gradients."""
    return [
        Component(
            "operator",
            "local",
            "sigma_operator_local.local:LocalOperator",
            "Train on this machine; data-parallel with shards and workers.",
            default_for="operator",
        ),
        Component("merger", "sum", "sigma_operator_local.mergers:Sum", "Sum the gradients of shards."),
    ]
