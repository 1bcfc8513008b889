"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return no records yet: the page is served by whoever imports ``sigma_monitor_web.page``."""
    return []
