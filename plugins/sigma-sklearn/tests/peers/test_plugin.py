from __future__ import annotations

from types import ModuleType

from sigma_kernel.testing import PluginSuite
from sigma_sklearn import plugin


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin
