"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the command."""
    path, summary = "sigma_cluster.command:cluster", "Check the workers of a configuration, and plan how many to take."
    return [Component("verb", "cluster", path, summary)]
