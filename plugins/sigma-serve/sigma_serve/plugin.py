"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the command."""
    return [Component("verb", "serve", "sigma_serve.command:serve", "Serve the predictions of a run by HTTP.")]
