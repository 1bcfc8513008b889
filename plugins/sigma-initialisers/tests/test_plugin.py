from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import sigma_initialisers
from sigma_initialisers import plugin
from sigma_kernel.contracts import Initialiser

CONTRACTS = {"initialiser": Initialiser}
COMPONENTS = plugin.sigma_components()


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: f"{c.kind}-{c.name}")
def test_every_record_leads_to_what_its_kind_promises(component):
    module, _, name = component.path.partition(":")
    assert issubclass(getattr(import_module(module), name), CONTRACTS[component.kind])
    assert getattr(sigma_initialisers, name) is getattr(import_module(module), name)


def test_the_plugin_names_the_api_it_was_written_for():
    assert plugin.SIGMA_API == "1.0"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Gauss"):
        sigma_initialisers.Gauss  # noqa: B018


def test_the_records_cost_no_import_of_numpy():
    code = "import sigma_initialisers.plugin as p, sys; p.sigma_components(); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
