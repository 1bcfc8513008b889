"""Declare that this plugin has no components: its estimators are imported."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return no record."""
    return []
