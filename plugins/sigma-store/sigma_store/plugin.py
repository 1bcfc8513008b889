"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the store of run folders."""
    summary = "Keep runs in folders of this machine."
    return [Component("store", "folder", "sigma_store.run_folder:FolderStore", summary, default_for="run")]
