"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the console monitor."""
    path = "sigma_monitor_console.console:ConsoleMonitor"
    return [Component("monitor", "console", path, "Progress on the terminal, or plain lines where there is none.")]
