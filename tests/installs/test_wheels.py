"""The wheels contain the right files, and a clean environment with nothing else trains with them."""

from __future__ import annotations

import json
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.installs.release import read_address, run

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


def test_an_index_accepts_all_distributions_as_they_are(wheels, sdists, tmp_path):
    built = [*wheels.values(), *sdists.values()]
    run(sys.executable, "-m", "twine", "check", "--strict", *built, folder=tmp_path)
    run(sys.executable, "-m", "check_wheel_contents", *wheels.values(), folder=tmp_path)


def test_a_wheel_says_where_it_is_from_and_its_page_has_no_relative_links(wheels):
    for wheel in wheels.values():
        (name,) = (file for file in ZipFile(wheel).namelist() if file.endswith(".dist-info/METADATA"))
        about = message_from_bytes(ZipFile(wheel).read(name))
        addresses = dict(line.split(", ") for line in about.get_all("Project-URL"))
        assert addresses["Repository"] == read_address(ROOT)
        assert "](.." not in about.get_payload()
        assert f"pip install {about['Name']}" in about.get_payload()


def test_a_source_distribution_holds_the_licence_the_page_and_all_tests(sdists):
    for name, sdist in sdists.items():
        folder = ROOT if name == "sigma-kernel" else ROOT / "plugins" / name
        with tarfile.open(sdist) as archive:
            files = {file.partition("/")[2] for file in archive.getnames()}
        page = "sigma_kernel/README.md" if name == "sigma-kernel" else "README.md"
        tests = {str(path.relative_to(folder)) for path in folder.glob("tests/**/*.py")}
        assert tests
        assert {"LICENSE", "pyproject.toml", page} | tests <= files
        assert not any("__pycache__" in file for file in files)


@pytest.mark.parametrize("name", ["sigma-kernel", "sigma-run"])
def test_a_source_distribution_builds_the_same_wheel(name, wheels, sdists, tmp_path):
    with tarfile.open(sdists[name]) as archive:
        archive.extractall(tmp_path, filter="data")
    (project,) = (path for path in tmp_path.iterdir() if path.is_dir())
    run(sys.executable, "-m", "flit_core.wheel", "--outdir", tmp_path, project, folder=tmp_path)
    (again,) = tmp_path.glob("*.whl")
    texts = ({file: ZipFile(wheel).read(file) for file in ZipFile(wheel).namelist()} for wheel in (again, wheels[name]))
    assert next(texts) == next(texts)


def test_a_clean_environment_with_all_wheels_trains(light, place):
    here = place()
    here.install(*light)
    installed = {plugin["name"] for plugin in json.loads(here.run("sigma", "plugins", "--json"))["plugins"]}
    assert installed == light - {"sigma-http", "sigma-kernel", "sigma-ml", "sigma-step", "sigma-testing"}
    run("uv", "pip", "check", "--python", here.binary("python"), folder=here.folder)
    here.run("sigma", "plugins", "doctor")
    assert json.loads(here.run("sigma", "run", "xor", "--json"))["status"] in ("finished", "stopped")
    assert str(here.folder) in here.run("python", "-c", "import sigma_kernel; print(sigma_kernel.__file__)")
