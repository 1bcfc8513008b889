from __future__ import annotations

from types import ModuleType

import pytest
from attrs import fields, has

import sigma_layers
from sigma_kernel.errors import SigmaError
from sigma_layers import plugin
from sigma_testing import PluginSuite

FLAGS = [
    (name, one)
    for name in sigma_layers.__all__
    if has(getattr(sigma_layers, name))
    for one in fields(getattr(sigma_layers, name))
    if one.type in (bool, "bool")
]


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin


@pytest.mark.parametrize(("layer", "flag"), FLAGS, ids=lambda one: one if isinstance(one, str) else one.name)
def test_text_is_neither_true_nor_false(layer, flag):
    assert flag.validator is not None
    with pytest.raises(SigmaError, match=rf"{layer}\.{flag.name}: must be .*\(got 'no'\)"):
        flag.validator(object.__new__(getattr(sigma_layers, layer)), flag, "no")
