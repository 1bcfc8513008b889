"""What the room offers can be loaded."""

from __future__ import annotations

import sigma_monitor_console
from sigma_kernel.plugins.catalogue import load
from sigma_monitor_console.plugin import SIGMA_API, sigma_components


def test_every_component_can_be_loaded() -> None:
    assert SIGMA_API == "1.0"
    assert [load(component) for component in sigma_components()] == [sigma_monitor_console.ConsoleMonitor]
