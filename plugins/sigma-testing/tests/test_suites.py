"""The suites can be imported as documented, and the plugin suite fails for any broken plugin."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import sigma_testing as testing
from sigma_testing import generate
from sigma_testing.plugin import failures


def test_every_suite_can_be_imported_from_one_place() -> None:
    for name in (name for name in dir(testing) if name.endswith("Suite")):
        assert isinstance(getattr(testing, name), type), name


@pytest.mark.parametrize("name", [name for name in dir(testing) if name.endswith("Suite")])
def test_every_suite_asks_for_what_is_tested_in_one_way(name: str) -> None:
    assert "make" in getattr(testing, name).__abstractmethods__


def test_every_suite_of_the_package_is_exported() -> None:
    folder = Path(str(testing.__file__)).parent
    classes = {
        n.name for path in folder.glob("*.py") for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)
    }
    assert {name for name in classes if name.endswith("Suite") and not name.startswith("_")} <= set(dir(testing))


# -- broken plugins ----------------------------------------------------------------------------------------------------
ACME = {
    "__init__": "from sigma_kernel import lazy_exports\nfrom acme_gates.plugin import sigma_components\n"
    "__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())\n",
    "__init__.pyi": f"{generate.HEADER}from acme_gates.gate import swing as swing\n",
    "py.typed": "",
    "gate": "def swing(x): return x\ngate = swing\n",
    "plugin": "from sigma_kernel import Component, hookimpl\nSIGMA_API = '1.0'\n@hookimpl\ndef sigma_components():\n"
    "    return [Component('activation', 'gate', 'acme_gates.gate:swing', 'Let everything pass.')]\n",
}
BROKEN = {
    "nothing": ("plugin", "", "", set()),
    "no exports": ("__init__", ACME["__init__"], "", set()),
    "another API": ("plugin", "1.0", "2.0", {"test_an_entry_point_names_the_module_and_the_plugin_is_ready"}),
    "a newer API": ("plugin", "1.0", "1.9", {"test_an_entry_point_names_the_module_and_the_plugin_is_ready"}),
    "numpy": ("plugin", "SIGMA_API", "import numpy\nSIGMA_API", {
        "test_component_records_import_neither_numpy_nor_the_components"}),
    "its component": ("plugin", "SIGMA_API", "import acme_gates.gate\nSIGMA_API", {
        "test_component_records_import_neither_numpy_nor_the_components"}),
    "a function that makes a layer": ("plugin", "'activation'", "'layer'", set()),
    "another kind": ("plugin", "'activation'", "'hook'", {"test_every_component_record_resolves_to_its_kind"}),
    "a command that its metadata lacks": ("plugin", "'activation'", "'verb'", {
        "test_commands_are_declared_in_the_metadata_as_well"}),
    "no function": ("gate", "def swing(x): return x", "swing = 1", {
        "test_every_component_record_resolves_to_its_kind"}),
    "no sentence": ("plugin", "Let everything pass.", "a gate", {"test_every_summary_is_a_sentence_on_one_line"}),
    "no export": ("__init__", "components=sigma_components()", "{'plugin': 'SIGMA_API'}", {
        "test_the_package_exports_the_components_of_its_records", "test_type_checkers_see_the_same_names"}),
    "a name that is not there": ("__init__", "components=", "{'gate': 'hinge'}, ", {
        "test_a_star_import_has_every_exported_name", "test_type_checkers_see_the_same_names"}),
    "any name": ("__init__", ACME["__init__"], "def __getattr__(name): return 1", {
        "test_a_star_import_has_every_exported_name", "test_a_misspelt_name_is_an_attribute_error"}),
    "a module of the same name": ("plugin", "acme_gates.gate:swing", "acme_gates.gate:gate", {
        "test_no_module_hides_an_exported_name", "test_type_checkers_see_the_same_names"}),
    "an old stub": ("__init__.pyi", "swing as swing", "slam as slam", {"test_type_checkers_see_the_same_names"}),
    "no types": ("py.typed", None, None, {"test_type_checkers_see_the_same_names"}),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_the_plugin_suite_fails_on_broken_plugins(case, distribution, tmp_path, monkeypatch):
    file, right, wrong, expected = BROKEN[case]
    modules = {name: text for name, text in ACME.items() if "." not in name}
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "acme-gates"))
    for name in ("__init__.pyi", "py.typed"):
        _write(tmp_path / "acme-gates" / "acme_gates" / name, ACME[name])
    if file in modules:
        modules[file] = modules[file].replace(right, wrong)
    elif right is None:
        (tmp_path / "acme-gates" / "acme_gates" / file).unlink()
    else:
        _write(tmp_path / "acme-gates" / "acme_gates" / file, ACME[file].replace(right, wrong))
    distribution("acme-gates", text=modules.pop("plugin"), **modules)
    assert _failures(import_module("acme_gates.plugin")) == expected


@pytest.mark.parametrize(
    ("commands", "passes"),
    [
        ({"gate": "acme_gates.gate:swing"}, True),
        ({"gate": "acme_gates.gate:gate"}, False),
        ({"gate": "acme_gates.gate:swing", "shut": "acme_gates.gate:swing"}, False),
        ({}, False),
    ],
)
def test_the_plugin_suite_compares_the_commands_of_records_and_metadata(
    distribution, tmp_path, monkeypatch, commands, passes
):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "acme-gates"))
    text = ACME["plugin"].replace("'activation'", "'verb'")
    distribution("acme-gates", text=text, gate=ACME["gate"], commands=commands)
    assert _failures(import_module("acme_gates.plugin")) == (
        set() if passes else {"test_commands_are_declared_in_the_metadata_as_well"}
    )


def test_the_plugin_suite_requires_an_entry_point(tmp_path, monkeypatch):
    _write(tmp_path / "acme_gates" / "__init__.py", "")
    _write(tmp_path / "acme_gates" / "plugin.py", ACME["plugin"])
    _write(tmp_path / "acme_gates" / "gate.py", ACME["gate"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("", ".plugin", ".gate"):
        monkeypatch.delitem(sys.modules, f"acme_gates{name}", raising=False)
    assert _failures(import_module("acme_gates.plugin")) == {
        "test_an_entry_point_names_the_module_and_the_plugin_is_ready"
    }


def test_the_plugin_suite_says_what_to_change(distribution, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "acme-gates"))
    text = ACME["plugin"].replace("acme_gates.gate:swing", "acme_gates.nowhere:swing")
    distribution("acme-gates", text=f"import numpy\n{text}")
    found = dict(line.split(": ", 1) for line in failures(import_module("acme_gates.plugin").__name__))
    heavy = found["test_component_records_import_neither_numpy_nor_the_components"]
    assert ", but: acme_gates.plugin: imports numpy, which makes every command slow. " in heavy
    missing = found["test_every_component_record_resolves_to_its_kind"]
    assert "'acme-gates:gate': acme_gates.nowhere:swing cannot be loaded (" in missing
    assert "Reinstall it: python -m pip install" in missing


def _failures(plugin: ModuleType) -> set[str]:
    """Return the names of the tests that a plugin fails."""
    return {text.partition(":")[0] for text in failures(plugin.__name__)}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
