from __future__ import annotations

from types import ModuleType

from sigma_cluster import plugin
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin
