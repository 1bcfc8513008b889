from __future__ import annotations

import click

from sigma_bench import plugin
from sigma_kernel.plugins.catalogue import load
from sigma_kernel.testing import PluginSuite


class TestPlugin(PluginSuite):
    plugin = plugin


def test_the_record_leads_to_a_command() -> None:
    [component] = plugin.sigma_components()
    assert isinstance(load(component), click.Command)
