"""Packages that export lazily: each name is available to users and type checkers, and is imported on first use."""

from __future__ import annotations

import ast
import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from sigma_kernel import Component, contracts, lazy_exports
from sigma_kernel.lazy import GENERATE
from sigma_kernel.plugins import rooms
from sigma_kernel.plugins.discovery import Plugin
from sigma_testing import generate

LAZY = (
    "sigma_kernel",
    "sigma_kernel.contracts",
    "sigma_kernel.graph",
    "sigma_run",
    "sigma_run.launcher",
    "sigma_run.overview",
    "sigma_run.study",
    "sigma_testing",
)
INIT = """
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {'gate': 'Gate'})
"""
each = pytest.mark.parametrize("name", LAZY)


@each
def test_every_exported_name_exists_and_is_star_imported(name):
    package, names = import_module(name), {}
    exec(f"from {name} import *", names)
    assert sorted(names.keys() - {"__builtins__"}) == package.__all__ == dir(package)
    assert all(names[one] is getattr(package, one) for one in package.__all__)


@each
def test_a_misspelt_name_is_an_attribute_error_that_suggests_similar_names(name):
    package = import_module(name)
    known = next(one for one in package.__all__ if len(one) > 4)
    with pytest.raises(AttributeError, match=rf"^module '{name}' has no attribute '{known}x'. Did you mean '{known}'"):
        getattr(package, f"{known}x")
    assert not hasattr(package, "__nonsense__")


def test_the_kernel_exports_every_contract_of_plugins():
    kernel = import_module("sigma_kernel")
    assert set(contracts.__all__) <= set(kernel.__all__)
    assert all(getattr(kernel, name) is getattr(contracts, name) for name in contracts.__all__)


@each
def test_no_module_hides_an_exported_name(name):
    package = import_module(name)
    modules = [one for one in package.__all__ if find_spec(f"{name}.{one}")]
    assert all(getattr(package, one) is import_module(f"{name}.{one}") for one in modules)


def test_the_stubs_of_the_kernel_are_up_to_date():
    stubs = generate.stubs("sigma_kernel") | generate.stubs("sigma_run") | generate.stubs("sigma_testing")
    assert len(stubs) == len(LAZY)
    assert [path for path, text in stubs.items() if path.read_text("utf-8") != text] == [], GENERATE


def test_a_stub_imports_each_name_from_its_module():
    exports, _, _ = lazy_exports(
        "acme", {"": "shapes", "gate": "Gate open", "deep.inner": "functions"}, [SimpleNamespace(path="a.b:C")]
    )
    tree = ast.parse(generate.stub(exports, versioned=True))
    froms = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert [(node.module, [alias.asname for alias in node.names]) for node in froms] == [
        ("a.b", ["C"]), ("acme", ["shapes"]), ("acme.deep.inner", ["functions"]), ("acme.gate", ["Gate"]),
        ("acme.gate", ["open"]),
    ]  # fmt: skip
    assert isinstance(tree.body[-1], ast.AnnAssign)


def test_the_generator_writes_only_missing_files(tmp_path, monkeypatch, distribution):
    distribution("acme-layers", '"layer", "gate", "acme_layers.gate:Gate", "A gate."', gate="class Gate: ...")
    package = tmp_path / "acme-layers" / "acme_layers"
    (package / "__init__.py").write_text(INIT)
    monkeypatch.delitem(sys.modules, "acme_layers")
    found = generate.generated_files(tmp_path)
    assert found == {package / "__init__.pyi": f"{generate.HEADER}from acme_layers.gate import Gate as Gate\n"}
    assert all(path.is_relative_to(Path(str(contracts.__file__)).parents[1]) for path in generate.stubs("sigma_kernel"))


def test_a_lazy_export_is_imported_once_and_may_be_a_module(monkeypatch):
    package = ModuleType("sigma_kernel.fake")
    monkeypatch.setitem(sys.modules, package.__name__, package)
    package.__getattr__, _, names = lazy_exports(package.__name__, components=[SimpleNamespace(path="xml.dom:minidom")])
    assert names == ["minidom"]
    assert "minidom" not in vars(package)
    assert package.minidom is vars(package)["minidom"] is sys.modules["xml.dom.minidom"]


def test_a_planned_room_is_offered_once_it_exists():
    plugins = [
        Plugin(
            "sigma-operator-mpi",
            components=(Component("operator", "mpi", "a:B", "It."), Component("panel", "x", "a:C", "It.")),
        ),
        Plugin("sigma-monitor-console", components=(Component("monitor", "plain", "a:B", "It."),)),
    ]
    before, after = json.loads(rooms.PATH.read_text("utf-8")), json.loads(generate.table(plugins))
    assert after["offered"] == dict(sorted(after["offered"].items()))
    assert after["offered"].pop("sigma-operator-mpi") == {"operator": "mpi", "panel": "x"}
    before["offered"].pop("sigma-operator-mpi")
    assert after["offered"] == before["offered"] | {"sigma-monitor-console": {"monitor": "plain"}}
    assert after["planned"].keys() == before["planned"].keys() - {"sigma-operator-mpi"}
