from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import sigma_layers
from sigma_kernel.contracts import Layer
from sigma_layers import plugin

COMPONENTS = plugin.sigma_components()


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: f"{c.kind}-{c.name}")
def test_every_record_leads_to_what_its_kind_promises(component):
    module, _, name = component.path.partition(":")
    found = getattr(import_module(module), name)
    assert issubclass(found, Layer) if component.kind == "layer" else callable(found)
    assert getattr(sigma_layers, name) is found


def test_the_plugin_names_the_api_it_was_written_for():
    assert plugin.SIGMA_API == "1.0"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Dens"):
        sigma_layers.Dens  # noqa: B018


def test_the_records_cost_no_import_of_numpy():
    code = "import sigma_layers.plugin as p, sys; p.sigma_components(); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
