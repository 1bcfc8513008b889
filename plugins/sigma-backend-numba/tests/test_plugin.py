from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import sigma_backend_numba
from sigma_backend_numba import plugin
from sigma_kernel.contracts import Backend


def test_the_record_leads_to_a_backend():
    (component,) = plugin.sigma_components()
    module, _, name = component.path.partition(":")
    found = getattr(import_module(module), name)
    assert (component.kind, component.name) == ("backend", "numba")
    assert issubclass(found, Backend)
    assert getattr(sigma_backend_numba, name) is found


def test_the_plugin_names_the_api_it_was_written_for():
    assert plugin.SIGMA_API == "1.0"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="CudaBackend"):
        sigma_backend_numba.CudaBackend  # noqa: B018


def test_the_record_costs_no_import_of_numpy_and_the_backend_none_of_its_compiler():
    code = "import sys; from sigma_backend_numba import plugin; plugin.sigma_components(); assert 'numpy' not in "
    code += "sys.modules; import sigma_backend_numba.backend; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
