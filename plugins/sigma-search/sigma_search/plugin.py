"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the command and of the hook of trials."""
    return [
        Component("verb", "search", "sigma_search.command:search_command", "Search for the settings that train best."),
        Component("hook", "trial", "sigma_search.hook:TrialHook", "Record a value for a search, and prune the trial."),
    ]
