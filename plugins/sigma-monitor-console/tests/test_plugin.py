from __future__ import annotations

from sigma_kernel.testing import PluginSuite
from sigma_monitor_console import plugin


class TestPlugin(PluginSuite):
    plugin = plugin
