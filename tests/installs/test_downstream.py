"""Plugins that others have published still install, pass their tests and train: those of tests/downstream."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copytree

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = sorted(path.parent for path in ROOT.glob("tests/downstream/*/pyproject.toml"))
DEFAULT = re.findall(r"^-e \./plugins/(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
pytestmark = pytest.mark.installs


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_a_published_plugin_passes_its_tests_and_trains(project, place, tmp_path):
    here, copy = place(), copytree(project, tmp_path / project.name)
    here.install("sigma-kernel", "sigma-testing", *DEFAULT, str(copy), "pytest")
    here.run("pytest", "-q", "-p", "no:cacheprovider", "tests", folder=copy)
    here.run("sigma", "plugins", "doctor")
    for file in set(copy.glob("*.toml")) - {copy / "pyproject.toml"}:
        assert json.loads(here.run("sigma", "run", str(file), "--json"))["status"] == "finished"


def test_the_plugins_of_third_parties_are_found():
    assert {project.name for project in PROJECTS} >= {"acme-kinds", "acme-sigma"}
