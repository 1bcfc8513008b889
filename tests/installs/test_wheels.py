"""The wheels contain the right files, and a clean environment with nothing else trains with them."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.installs


def test_a_wheel_holds_its_package_and_no_tests(wheels):
    for name, wheel in wheels.items():
        package = name.replace("-", "_")
        files = set(ZipFile(wheel).namelist())
        assert f"{package}/py.typed" in files
        folder = ROOT if name == "sigma-kernel" else ROOT / "plugins" / name
        generated = [*(folder / package).rglob("*.pyi"), *(folder / package).rglob("*.json")]
        assert {str(path.relative_to(folder)) for path in generated} <= files
        assert {file.split("/")[0].partition("-")[0] for file in files} == {package}
        assert not any("tests/" in file for file in files)
        assert name in ("sigma-http", "sigma-kernel", "sigma-step", "sigma-testing") or any(
            file.endswith("entry_points.txt") for file in files
        )


def test_a_wheel_holds_the_text_of_the_licence(wheels):
    for wheel in wheels.values():
        (name,) = (file for file in ZipFile(wheel).namelist() if file.endswith(".dist-info/licenses/LICENSE"))
        assert ZipFile(wheel).read(name) == (ROOT / "LICENSE").read_bytes()


def test_a_clean_environment_with_all_wheels_trains(light, place):
    here = place()
    here.install(*light)
    installed = {plugin["name"] for plugin in json.loads(here.run("sigma", "plugins", "--json"))["plugins"]}
    assert installed == light - {"sigma-http", "sigma-kernel", "sigma-ml", "sigma-step", "sigma-testing"}
    here.run("sigma", "plugins", "doctor")
    assert json.loads(here.run("sigma", "run", "xor", "--json"))["status"] in ("finished", "stopped")
    assert str(here.folder) in here.run("python", "-c", "import sigma_kernel; print(sigma_kernel.__file__)")
