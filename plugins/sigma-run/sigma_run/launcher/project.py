"""``sigma plugins check``: everything that a plugin must be before a release."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.discovery import Plugin
from sigma_kernel.plugins.kinds import problems as problems_of
from sigma_kernel.plugins.rooms import install
from sigma_kernel.plugins.specs import GROUP
from sigma_run.launcher.doctor import undeclared_imports, unmet, unusable
from sigma_run.launcher.scaffold import SERIES
from sigma_run.launcher.written import former_imports
from sigma_training.optional import optional

KEYS = ("name", "version", "description", "readme", "requires-python", "dependencies")
SECONDS = 1800  # for the tests, and for the wheel


def check_project(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the checks of a plugin's project with their problems; checks that depend on a failed one are left out.

    Raises SigmaConfigError without a readable ``pyproject.toml``.
    """
    project = read_project(root)
    problems = [*metadata(project)]
    yield "metadata", problems
    if problems:
        return
    name = str(project["name"])
    sources = [root / part for part in (re.sub(r"[-.]", "_", name), "src", "tests")]
    if moved := [*former_imports(path for folder in sources for path in sorted(folder.rglob("*.py")))]:
        yield "imports", moved
        return
    try:
        plugin = catalogue().plugin(name)
    except SigmaPluginError:
        yield "installation", [f"{name}: not installed. Run `python -m pip install -e .` in {root}."]
        return
    reason = plugin.reason or plugin.warning
    yield "installation", [f"{name}: {reason}"] if reason else []
    if plugin.state == "ready":
        yield "requirements", [*unmet(name), *undeclared_imports(plugin)]
        yield "components", problems_of(plugin.components) or [*unusable(plugin.components)]
        yield "conformance", _suites().failures(*project["entry-points"][GROUP].values())
    yield "tests", tests(root)
    yield "wheel", wheel(root, plugin)


def _suites() -> Any:
    """Import the suites, which run with pytest."""
    try:
        return optional("sigma plugins check", "sigma_testing.plugin")
    except SigmaPluginError as error:
        raise SigmaPluginError(f"sigma plugins check: needs sigma-testing. {install('sigma-testing')}") from error


def read_project(root: Path) -> Mapping[str, Any]:
    """Return the table ``[project]`` of a project."""
    path = root / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text("utf-8")).get("project")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SigmaConfigError(f"{path}: cannot be read: {reason}. Pass the directory of a plugin.") from error
    if not isinstance(project, dict):
        raise SigmaConfigError(f"{path}: has no table [project]. `sigma plugins new NAME` writes a complete one.")
    return project


def metadata(project: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems in the metadata of a project."""
    for key in KEYS:
        if key not in project and key not in project.get("dynamic", ()):
            yield f"pyproject.toml: [project] has no {key}. Add it."
    needs = [text for text in project.get("dependencies", ()) if re.match(r"sigma[-_.]++kernel\b", text, re.IGNORECASE)]
    if not any(re.search("~=|<|==", text) for text in needs):
        yield f'pyproject.toml: no dependency on a range of the kernel. Add "sigma-kernel ~={SERIES}".'
    if not isinstance(project.get("entry-points", {}).get(GROUP), dict):
        yield f'pyproject.toml: no entry point. Add [project.entry-points."{GROUP}"] with NAME = "PACKAGE.plugin".'


def tests(root: Path) -> list[str]:
    """Return the last lines of a failed test run."""
    return _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], root)


def wheel(root: Path, plugin: Plugin) -> list[str]:
    """Return the problems of the wheel that the project builds."""
    if not (builder := _find_builder()):
        return ["pip builds the wheel, and is not installed here. Run python -m ensurepip, or uv pip install pip."]
    with TemporaryDirectory() as folder:
        if problems := _run([*builder, folder, "."], root):
            return problems
        (file,) = Path(folder).glob("*.whl")
        files = set(ZipFile(file).namelist())
    modules = {component.path.partition(":")[0].replace(".", "/") for component in plugin.components}
    missing = [name for name in sorted(modules) if not files & {f"{name}.py", f"{name}/__init__.py"}]
    return [f"{file.name}: does not contain {name}.py." for name in missing] + [
        f"{file.name}: contains {name}. Leave the tests out." for name in sorted(files) if name.startswith("tests/")
    ]


def _find_builder() -> list[str]:
    """Return the command that builds a wheel, up to its folder: of pip, else of uv; empty without either."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    return [uv, "build", "--quiet", "--wheel", "--out-dir"] if (uv := shutil.which("uv")) else []


def _run(command: list[str], root: Path) -> list[str]:
    """Run a command in a directory; return its last lines if it fails."""
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=SECONDS)
    text = (done.stdout + done.stderr).strip() or f"exit code {done.returncode}"
    return text.splitlines()[-5:] if done.returncode else []
