from __future__ import annotations

from sigma_initialisers import plugin
from sigma_kernel.testing import PluginSuite


class TestPlugin(PluginSuite):
    plugin = plugin
