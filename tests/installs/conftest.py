"""Wheels of the whole project, built and installed once, and clean virtual environments to install them into."""

from __future__ import annotations

import fcntl
import os
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from tests.installs.release import run, sdists as build_sdists, wheels as build_wheels
from tests.installs.views import find_site

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
        run(*install, "-c", pins, *wanted, folder=self.folder, attempts=3)  # uv crashes in some sandboxes

    def binary(self, name: str) -> Path:
        """Return the path of an installed program."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / name

    def run(self, name: str, *arguments: str, folder: Path | None = None) -> str:
        """Run an installed program and return its output; fail the test if it fails."""
        return run(str(self.binary(name)), *arguments, folder=folder or self.folder)


def make_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Make a folder if no other worker has, while the others wait; return it."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.with_suffix(".complete").exists():
            folder.mkdir()
            make(folder)
            folder.with_suffix(".complete").touch()
    return folder


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of a test session share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def wheels(common: Path) -> dict[str, Path]:
    """Return the wheel of every distribution of the project."""
    built = sorted(make_once(common / "wheels", lambda folder: build_wheels(ROOT, folder)).glob("*.whl"))
    assert len(built) == 1 + len([*ROOT.glob("plugins/*/pyproject.toml")])
    return {path.name.split("-")[0].replace("_", "-"): path for path in built}


@pytest.fixture(scope="session")
def sdists(common: Path) -> dict[str, Path]:
    """Return the source distribution of every distribution of the project."""
    built = sorted(make_once(common / "sdists", lambda folder: build_sdists(ROOT, folder)).glob("*.tar.gz"))
    assert len(built) == 1 + len([*ROOT.glob("plugins/*/pyproject.toml")])
    return {path.name.rpartition("-")[0].replace("_", "-"): path for path in built}


@pytest.fixture(scope="session")
def light(wheels: dict[str, Path]) -> set[str]:
    """Return the distributions that need neither JAX nor PyTorch."""
    return wheels.keys() - {path.parents[2].name for path in ROOT.glob("plugins/*/tests/peers/test_plugin.py")}


@pytest.fixture(scope="session")
def whole(common: Path, wheels: dict[str, Path], light: set[str]) -> Path:
    """Return the folder of packages of an environment that has these distributions, and what their tests need."""

    def install(folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        Place(folder, wheels).install(*sorted(light), extra="[test]")
        Place(folder, wheels).install("hypothesis", "pytest")

    return find_site(make_once(common / "whole", install))


@pytest.fixture
def place(tmp_path: Path, wheels: dict[str, Path]) -> Callable[[], Place]:
    """Return a function that makes an empty virtual environment."""

    def make() -> Place:
        venv.create(tmp_path / "venv", with_pip=False, symlinks=os.name != "nt")
        return Place(tmp_path / "venv", wheels)

    return make
