"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the command."""
    summary = "Report how well a trained network predicts, as a page."
    return [Component("verb", "report", "sigma_report.command:report", summary)]
