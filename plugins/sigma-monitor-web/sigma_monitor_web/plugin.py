"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the monitor and of the command."""
    return [
        Component("monitor", "web", "sigma_monitor_web.monitor:WebMonitor", "A dashboard in the browser."),
        Component("verb", "password", "sigma_monitor_web.password:password", "Let a person into dashboards of a team."),
        Component("verb", "ui", "sigma_monitor_web.ui:ui", "Show finished and running runs in the browser."),
    ]
