"""Wheels of the whole project, built once, and clean virtual environments to install them into."""

from __future__ import annotations

import os
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from tests.installs.release import run, wheels as build_wheels

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
        install = ("uv", "pip", "install", "-q", "--python", self.binary("python"))
        run(*install, "-c", pins, *wanted, folder=self.folder)

    def binary(self, name: str) -> Path:
        """Return the path of an installed program."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / name

    def run(self, name: str, *arguments: str, folder: Path | None = None) -> str:
        """Run an installed program and return its output; fail the test if it fails."""
        return run(str(self.binary(name)), *arguments, folder=folder or self.folder)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheel of every distribution of the project."""
    built = build_wheels(ROOT, tmp_path_factory.mktemp("wheels"))
    assert len(built) == 1 + len([*ROOT.glob("plugins/*/pyproject.toml")])
    return {path.name.split("-")[0].replace("_", "-"): path for path in built}


@pytest.fixture
def place(tmp_path: Path, wheels: dict[str, Path]) -> Callable[[], Place]:
    """Return a function that makes an empty virtual environment."""

    def make() -> Place:
        venv.create(tmp_path / "venv", with_pip=False, symlinks=os.name != "nt")
        return Place(tmp_path / "venv", wheels)

    return make
