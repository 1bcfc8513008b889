from __future__ import annotations

from sigma_kernel.testing import PluginSuite
from sigma_plot import plugin


class TestPlugin(PluginSuite):
    plugin = plugin
