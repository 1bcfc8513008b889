"""Everything installs from a directory that serves as an index, without the checkout: by the README, and by a page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tests.installs.page import read_steps
from tests.installs.release import read_address
from tests.installs.views import find_site, list_distributions

ROOT = Path(__file__).parents[2]
DAILY = "SIGMA_DAILY" in os.environ  # tox -e long
VERSIONS = (*({f"3.{minor}" for minor in range(11, 15)} if DAILY else ()),)
pytestmark = pytest.mark.installs


def find_python(version: str) -> str:
    """Return an interpreter of a version that is on this machine; skip the test if there is none."""
    command = ["uv", "python", "find", "--no-project", "--system", version]
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        pytest.skip(f"Python {version} is not installed")
    return done.stdout.strip()


def make_environment(folder: Path, python: str) -> Path:
    """Make a virtual environment without packages."""
    subprocess.run(["uv", "venv", "-q", "--python", python, folder], check=True)
    return folder


def call(command: str, venv: Path, index: Path, folder: Path) -> str:
    """Run a line of a shell in an environment whose installer looks in the index as well; uv stands in for pip."""
    hidden = {"PYTHONPATH", "SIGMA_DISABLE_PLUGINS", "SIGMA_BACKEND"}
    own = {
        "PATH": os.pathsep.join([str(venv / "bin"), os.environ["PATH"]]),
        "VIRTUAL_ENV": str(venv),
        "UV_FIND_LINKS": str(index),
        "PIP_FIND_LINKS": str(index),
    }
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | own
    line = command.replace("python -m pip", "uv pip").replace("python -m build", "python -m build --installer uv")
    done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def address_of(distribution: Distribution) -> str:
    lines = distribution.metadata.get_all("Project-URL") or []
    return dict(line.split(", ", 1) for line in lines).get("Repository", "")


@pytest.mark.parametrize("version", sorted({f"3.{sys.version_info.minor}", *VERSIONS}))
def test_the_first_command_for_an_index_installs_and_trains(version, wheels, common, tmp_path):
    venv, index = make_environment(tmp_path / "venv", find_python(version)), common / "wheels"
    [command] = re.findall(r"^    (python -m pip install sigma-ml && .*)$", (ROOT / "README.md").read_text(), re.M)
    call(command, venv, index, tmp_path)
    [summary] = tmp_path.glob("runs/*/summary.json")
    assert json.loads(summary.read_text())["status"] == "finished"
    ours = [one for name, one in list_distributions(find_site(venv)).items() if name.startswith("sigma-")]
    assert len(ours) > 20
    assert {address_of(one) for one in ours} == {read_address(ROOT)}  # none is that of somebody else of this name


@pytest.mark.skipif(not DAILY, reason="builds in isolated environments, for a minute: tox -e long")
def test_the_commands_of_the_page_about_publishing_run_in_their_order(wheels, common, tmp_path):
    venv, index, folder = make_environment(tmp_path / "venv", sys.executable), common / "wheels", tmp_path
    call("python -m pip install sigma-ml sigma-testing", venv, index, tmp_path)
    for path, text in read_steps():
        if path:
            (tmp_path / path).write_text(text)
        elif text.startswith("cd "):
            folder = (folder / text.removeprefix("cd ")).resolve()
        else:
            call(text, venv, index, folder)
    assert {path.suffix for path in (tmp_path / "acme-snake" / "dist").iterdir()} == {".gz", ".whl"}
    assert "installed" in call("sigma plugins search wave --index index.json", venv, index, tmp_path)
