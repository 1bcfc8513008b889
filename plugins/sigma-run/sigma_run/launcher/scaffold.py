"""``sigma plugins new``: write the distribution of a plugin, with a component, its tests and CI."""

from __future__ import annotations

import keyword
import re
import shutil
from pathlib import Path
from string import Template

from sigma_kernel import __version__
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.lazy import HEADER
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.specs import API_VERSION, VERBS

FOLDER = Path(__file__).with_name("templates")
DECLARED = f'[project.entry-points."{VERBS}"]'
SERIES = __version__.rpartition(".")[0]  # the first minor version that a new plugin accepts
FUNCTIONS = ("activation", "lowering", "op", "panel", "recipe", "verb")  # kinds whose component is no class

LIBRARIES = {
    "encoder": ', "pyarrow >=17.0"',
    "store": f', "sigma-store ~={SERIES}"',
    "trainer": f', "sigma-training ~={SERIES}"',
    "verb": ', "click >=8.1.7"',
}  # that a component of a kind needs besides
EXTRAS = {  # of sigma-testing, by what its suites need besides
    "run": ("recipe", "verb"),
    "store,training": ("command", "trainer"),
    "tables": ("encoder",),
    "training": (
        "configuration", "generator", "hook", "merger", "metric", "monitor", "operator", "panel",
    ),
}  # fmt: skip


def kinds() -> list[str]:
    """Return the kinds of component for which there is a template."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def create(parent: Path, name: str, kind: str, component: str) -> Path:
    """Write the distribution ``name`` into a new directory below ``parent``, and return that.

    Raises SigmaConfigError for a name that cannot be one, and for a directory that exists or cannot be written.
    """
    folder = parent / name
    files = texts(name, kind, component or _free(kind, name.removeprefix("sigma-").rpartition("-")[2]))
    if folder.exists():
        raise SigmaConfigError(f"{folder}: already exists. Choose another name.")
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SigmaConfigError(f"{folder}: cannot be written: {error.strerror}. Choose another --folder.") from error
    return folder


def _free(kind: str, component: str) -> str:
    """Return the name of a component that no installed plugin offers; raise SigmaConfigError if one does."""
    for record in catalogue().components(kind):
        if record.name == component:
            offer = f"{kind} {component!r}: {record.distribution} offers it already"
            raise SigmaConfigError(f"{offer}. Pass --component with another name, or with this one to compete.")
    return component


def texts(name: str, kind: str, component: str) -> dict[str, str]:
    """Return the files of a distribution by their paths."""
    words = _words(name, kind, component)
    _, component_text, tests = re.split(r"^=== \w++\n", _template(kind), flags=re.MULTILINE)
    package = words["package"]
    filled = {
        "pyproject.toml": PROJECT,
        "README.md": README,
        ".gitignore": "__pycache__/\n/dist/\n/.venv/\n",
        ".github/workflows/tests.yml": WORKFLOW,
        f"{package}/__init__.py": EXPORTS,
        f"{package}/__init__.pyi": HEADER + "$stubs",
        f"{package}/py.typed": "",
        f"{package}/plugin.py": PLUGIN,
        f"{package}/{words['module']}.py": f'"""$summary"""\n\n{component_text}',
        f"tests/test_{words['name']}.py": tests,
        "tests/test_plugin.py": TESTS,
    }
    return {path: Template(text).substitute(words) for path, text in filled.items()}


def _words(name: str, kind: str, component: str) -> dict[str, str]:
    """Return the values of the templates' placeholders."""
    if not re.fullmatch(r"[a-z][a-z0-9]*+(-[a-z0-9]++)*+", name):
        raise SigmaConfigError(f"{name!r}: not a name for a distribution. Use lower-case words and hyphens: acme-gate.")
    if not re.fullmatch(r"[a-z][a-z0-9_]*+", component) or keyword.iskeyword(component):
        raise SigmaConfigError(f"{component!r}: not a name for a component. Pass --component, such as leaky_gate.")
    title = "".join(word.capitalize() for word in component.split("_"))
    module = f"{component}_{kind}" if kind in FUNCTIONS else component
    place, summary = f"{name.replace('-', '_')}.{module}", _template(kind).partition("\n")[0]
    offered = {component: (kind, component if kind in FUNCTIONS else title)}
    if kind == "lowering":  # of an op of the same plugin
        offered = {component: ("op", component), f"{component}.numpy": (kind, f"{component}_of_array")}
    records = [f'Component("{of}", "{n}", "{place}:{thing}", "{summary}")' for n, (of, thing) in offered.items()]
    return {
        "distribution": name,
        "package": name.replace("-", "_"),
        "kind": kind,
        "name": component,
        "Name": title,
        "object": offered[component][1],
        "module": module,
        "commands": f'\n{DECLARED}\n{component} = "{place}:{component}"\n' if kind == "verb" else "",
        "libraries": LIBRARIES.get(kind, ""),
        "extra": next((f"[{extra}]" for extra, kinds in EXTRAS.items() if kind in kinds), ""),
        "records": "".join(f"        {record},\n" for record in records),
        "stubs": "".join(f"from {place} import {thing} as {thing}\n" for _, thing in offered.values()),
        "offered": [*offered][-1],
        "summary": summary,
        "api": API_VERSION,
        "series": SERIES,
        "rooms": "".join(f', "{room} ~={SERIES}"' for room in re.findall(r'"(sigma-[a-z-]++)"', _template(kind))),
    }


def _template(kind: str) -> str:
    return (FOLDER / f"{kind}.txt").read_text("utf-8")


PROJECT = """\
[build-system]
requires = ["flit_core >=3.11,<5"]
build-backend = "flit_core.buildapi"

[project]
name = "$distribution"
version = "0.1.0"
description = "$summary"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["attrs >=24.1", "numpy >=2.1", "sigma-kernel ~=$series"$libraries$rooms]

[project.optional-dependencies]
test = ["pytest >=8.2", "sigma-testing$extra ~=$series"]

[project.entry-points."sigma_kernel.plugins"]
$name = "$package.plugin"
$commands
[tool.flit.module]
name = "$package"
"""
README = """\
# $distribution

A plugin for Sigma with the $kind `$offered`: $summary

    python -m pip install -e '.[test]'
    python -m pytest
    sigma components $kind $offered

Before a release, `sigma plugins check .` checks metadata, imports, components, tests and the wheel.
"""
WORKFLOW = """\
name: tests
on: [push, pull_request]
jobs:
  tests:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python-version: ["3.11", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: $${{ matrix.python-version }}
      - run: python -m pip install -e '.[test]'
      - run: python -m pytest
"""
EXPORTS = '''\
"""The plugin $distribution for Sigma."""

from $package.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
'''
PLUGIN = '''\
"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "$api"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all components."""
    return [
$records    ]
'''
TESTS = """\
from types import ModuleType

from $package import plugin
from sigma_testing import PluginSuite


class TestPlugin(PluginSuite):
    def make(self) -> ModuleType:
        return plugin
"""
