from __future__ import annotations

from types import ModuleType

import click

from sigma_bench import plugin
from sigma_kernel import catalogue
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin


def test_the_records_of_the_commands_resolve_to_commands() -> None:
    for component in plugin.sigma_components():
        assert isinstance(catalogue().load("verb", component.name), click.Command)
