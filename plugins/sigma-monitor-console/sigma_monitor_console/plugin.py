"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the console monitor."""
    path = "sigma_monitor_console.console:ConsoleMonitor"
    summary = "Progress bars on a terminal or in a notebook, plain lines in a log file."
    return [Component("monitor", "console", path, summary, default_for="progress")]
