from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from sigma_kernel import catalogue
from sigma_recipes import plugin
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin


@pytest.mark.parametrize("component", plugin.sigma_components(), ids=lambda component: component.name)
def test_a_recipe_has_the_name_that_its_plugin_declares(component):
    assert catalogue().load("recipe", component.name).name == component.name


def test_every_recipe_file_is_a_component():
    files = {path.stem for path in Path(plugin.__file__).parent.glob("*.toml")}
    assert files == {component.name for component in plugin.sigma_components()}
