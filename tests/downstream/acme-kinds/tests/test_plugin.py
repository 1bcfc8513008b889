from types import ModuleType

from acme_kinds import plugin
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin
