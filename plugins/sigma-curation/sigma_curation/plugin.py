"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"
COMMANDS = {
    "exclude": ("Exclude", "Exclude rows of a split from the next epoch on."),
    "include": ("Include", "Take excluded rows of a split back."),
    "relabel": ("Relabel", "Give rows of a split another label, from the next epoch on."),
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the commands that edit rows, and of the data set of edited rows."""
    return [
        *(Component("command", n, f"sigma_curation.commands:{cls}", about) for n, (cls, about) in COMMANDS.items()),
        Component(
            "dataset", "edited", "sigma_curation.edits:Edited", "A data set with rows left out or relabelled.",
            default_for="edited-rows",
        ),
    ]  # fmt: skip
