from __future__ import annotations

from types import ModuleType

from sigma_testing import PluginSuite
from sigma_training import plugin


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin
