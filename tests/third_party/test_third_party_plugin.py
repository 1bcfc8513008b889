"""The plugin of docs/plugins.md is built, installed and used by name, without changes elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.rooms

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
FILE = re.compile(r"^```{code-block} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BROKEN = {
    "pyproject.toml": """
[build-system]
requires = ["flit_core >=3.11,<5"]
build-backend = "flit_core.buildapi"

[project]
name = "broken-sigma"
version = "0.1.0"
description = "Raises when it is imported"

[project.entry-points."sigma_kernel.plugins"]
broken = "broken_sigma.plugin"
""",
    "broken_sigma/__init__.py": '"""Raise when it is imported."""\n',
    "broken_sigma/plugin.py": "raise SystemExit('out of order')\n",
}


def installed(files: dict[str, str], folder: Path, target: Path) -> Path:
    """Write the files of a distribution, build its wheel and install it into a folder; return the files' folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    called([*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", folder / "dist", folder])
    [wheel] = (folder / "dist").glob("*.whl")
    called([*pip, "install", "--no-deps", "--no-index", "--target", target, wheel])
    return folder


def called(command: list[str | Path], **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    """Return a function that runs ``sigma`` with the third-party plugin and a broken one installed."""
    root = tmp_path_factory.mktemp("third-party")
    folder = installed(dict(FILE.findall(PAGE.read_text())), root / "acme-sigma", root / "site")
    installed(BROKEN, root / "broken-sigma", root / "site")

    def python(*arguments: str, folder: Path = folder) -> subprocess.CompletedProcess[str]:
        return called([sys.executable, *arguments], PYTHONPATH=str(root / "site"))

    python.folder = folder
    return python


def test_the_plugin_page_describes_a_complete_distribution():
    assert {name for name, _ in FILE.findall(PAGE.read_text())} >= {
        "pyproject.toml",
        "acme_sigma/plugin.py",
        "acme.toml",
    }


def test_every_component_of_the_plugin_can_be_loaded(acme):
    shown = json.loads(acme("-m", "sigma_run", "plugins", "show", "acme-sigma", "--json").stdout)
    assert shown["state"] == "ready"
    kinds = {component["kind"] for component in shown["components"]}
    assert kinds == {"op", "lowering", "activation", "layer", "optimiser", "hook", "backend", "command", "verb"}
    acme("-c", """if True:
        from sigma_kernel import catalogue

        for component in catalogue().plugin("acme-sigma").components:
            catalogue().load(component.kind, component.full_name)
    """)  # fmt: skip


def test_a_run_can_use_every_component_by_name(acme, tmp_path):
    diary, runs = tmp_path / "diary.txt", tmp_path / "runs"
    overrides = [f"hooks.diary.file='{diary.as_posix()}'", f"run.folder='{runs.as_posix()}'"]
    sets = [part for one in overrides for part in ("--set", one)]
    done = acme("-m", "sigma_run", "run", str(acme.folder / "acme.toml"), "--json", *sets)
    summary = json.loads(done.stdout)
    assert summary["status"] in ("finished", "stopped")
    assert summary["backend"] == "plain"
    assert (summary["epochs"], len(diary.read_text().splitlines())) == (20, 20)
    resolved = (Path(summary["folder"]) / "config.toml").read_text()
    for name in ("gate", "sign_descent", "diary", "plain"):
        assert f"acme-sigma:{name}" in resolved
    losses = [float(line.split()[1]) for line in diary.read_text().splitlines()]
    assert losses[-1] < losses[0]


@pytest.mark.long
def test_runs_on_backends_with_kernels_for_the_op_end_with_the_same_results(acme, tmp_path):
    losses = {}
    for backend in ("plain", "numpy", "numba"):
        diary = tmp_path / f"{backend}.txt"
        folder = (tmp_path / "runs").as_posix()
        overrides = [f"run.backend='{backend}'", f"hooks.diary.file='{diary.as_posix()}'", f"run.folder='{folder}'"]
        sets = [part for one in overrides for part in ("--set", one)]
        acme("-m", "sigma_run", "run", str(acme.folder / "acme.toml"), "--json", *sets)
        losses[backend] = [float(line.split()[1]) for line in diary.read_text().splitlines()]
    assert losses["numpy"] == pytest.approx(losses["plain"], rel=1e-4)
    assert losses["numba"] == pytest.approx(losses["plain"], rel=1e-4)


def test_the_gradient_of_a_plugins_op_agrees_with_finite_differences(acme):
    acme(
        "-c",
        """if True:
        import numpy as np
        from acme_sigma.softsign import softsign
        from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace, trace
        from sigma_kernel import functions as f

        value = trace(lambda x: f.sum(softsign(x)), Spec((5,), "float64"))
        slope = Graph(value.inputs, tuple(gradient(value.outputs[0], value.inputs)))
        run, derive = (interpret(graph, numpy_namespace()) for graph in (value, slope))
        x, h = np.linspace(-2.1, 1.7, 5), 1e-6
        differences = [(run(x + h * e)[0] - run(x - h * e)[0]) / (2 * h) for e in np.eye(5)]
        np.testing.assert_allclose(derive(x)[0], differences, rtol=1e-8)
    """,
    )


def test_the_command_of_a_plugin_is_a_sigma_command(acme):
    assert acme("-m", "sigma_run", "greet", "Ada").stdout == "Hello, Ada.\n"
    assert re.search(r"^  greet +Acme's components for Sigma$", acme("-m", "sigma_run", "--help").stdout, re.MULTILINE)


def test_the_plugin_passes_the_tests_that_the_page_shows(acme):
    acme("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(acme.folder), str(acme.folder / "tests"))


def test_a_plugin_that_raises_on_import_does_not_affect_others(acme):
    shown = json.loads(acme("-m", "sigma_run", "plugins", "--json").stdout)["plugins"]
    states = {plugin["name"]: (plugin["state"], plugin["reason"]) for plugin in shown}
    assert states["broken-sigma"] == ("quarantined", "SystemExit: out of order")
    assert states["acme-sigma"] == ("ready", "")
