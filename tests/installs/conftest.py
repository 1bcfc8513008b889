"""Wheels of the whole project, built once, and clean virtual environments to install them into."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

ROOT = Path(__file__).parents[2]


@frozen
class Place:
    """A virtual environment; only what is installed here can be imported in it."""

    folder: Path
    wheels: dict[str, Path]

    def install(self, *names: str, extra: str = "") -> None:
        """Install distributions, the project's own from its wheels, with the named extra if they have it."""
        pins = self.folder / "constraints.txt"
        pins.write_text("".join(f"{name} @ {wheel.as_uri()}\n" for name, wheel in self.wheels.items()))
        wanted = [f"{one}{extra} @ {self.wheels[one].as_uri()}" if one in self.wheels else one for one in names]
        run("uv", "pip", "install", "-q", "--python", str(self.binary("python")), "-c", str(pins), *wanted)

    def binary(self, name: str) -> Path:
        """Return the path of an installed program."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / name

    def run(self, name: str, *arguments: str, folder: Path | None = None) -> str:
        """Run an installed program and return its output; fail the test if it fails."""
        return run(str(self.binary(name)), *arguments, folder=folder or self.folder)


def run(*command: str, folder: Path | None = None) -> str:
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "SIGMA_DISABLE_PLUGINS"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    if done.returncode:
        pytest.fail(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheel of every distribution of the project."""
    folder = tmp_path_factory.mktemp("wheels")
    projects = [ROOT, *(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
    for project in projects:
        run(sys.executable, "-m", "flit_core.wheel", "--outdir", str(folder), str(project))
    found = {path.name.split("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}
    assert len(found) == len(projects)
    return found


@pytest.fixture
def place(tmp_path: Path, wheels: dict[str, Path]) -> Callable[[], Place]:
    """Return a function that makes an empty virtual environment."""

    def make() -> Place:
        venv.create(tmp_path / "venv", with_pip=False, symlinks=os.name != "nt")
        return Place(tmp_path / "venv", wheels)

    return make
