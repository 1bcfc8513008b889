"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the commands."""
    summary = "Report how well a trained network predicts, as a page."
    return [
        Component("verb", "report", "sigma_report.command:report", summary),
        Component("verb", "share", "sigma_report.sharing:share", "Write a run as one file for others."),
        Component("verb", "open", "sigma_report.opening:open_archive", "Open an archive of a shared run."),
    ]
