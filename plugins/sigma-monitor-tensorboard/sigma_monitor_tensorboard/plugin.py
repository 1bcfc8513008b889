"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the monitor."""
    path = "sigma_monitor_tensorboard.monitor:TensorboardMonitor"
    return [Component("monitor", "tensorboard", path, "Event files for TensorBoard: curves, histograms, pictures.")]
