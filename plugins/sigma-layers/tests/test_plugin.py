from __future__ import annotations

from sigma_kernel.testing import PluginSuite
from sigma_layers import plugin


class TestPlugin(PluginSuite):
    plugin = plugin
