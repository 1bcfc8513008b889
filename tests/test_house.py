"""The repository: folders, required files, the commands of the README, and one version everywhere."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from configparser import ConfigParser
from datetime import date
from pathlib import Path
from runpy import run_path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import sigma_kernel
from sigma_kernel.lazy import GENERATE
from sigma_kernel.plugins import rooms
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.discovery import find
from sigma_run.launcher.scaffold import FOLDER, LIBRARIES, REQUIRED
from sigma_testing import generate

ROOT = Path(__file__).parents[1]
ROOMS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
OPT_IN = {
    "sigma-backend-cupy", "sigma-backend-jax", "sigma-backend-torch", "sigma-cluster", "sigma-export-onnx",
    "sigma-huggingface", "sigma-monitor-tensorboard", "sigma-operator-mpi", "sigma-operator-ray", "sigma-report",
    "sigma-search", "sigma-serve", "sigma-sklearn", "sigma-testing",
}  # fmt: skip
MADE_ON_THE_WAY = {"build", "dist", "runs", "__pycache__"}
INSTALL = "python -m pip install -r requirements.txt && sigma run digits"
CHECK = "python -m pip install tox && tox -p 2"

WITHOUT_COMPONENTS = {"sigma-http", "sigma-ml", "sigma-step", "sigma-testing"}
PLUGINS = [room for room in ROOMS if room.name not in WITHOUT_COMPONENTS]
by_name = pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
of_plugins = pytest.mark.parametrize("room", PLUGINS, ids=lambda room: room.name)


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def test_the_repository_has_the_documented_folders_and_no_others():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert folders - MADE_ON_THE_WAY == {"sigma_kernel", "plugins", "tests", "docs"}


def test_every_folder_of_plugins_is_a_listed_room():
    assert [path.name for path in sorted((ROOT / "plugins").iterdir()) if path.is_dir()] == [
        room.name for room in ROOMS
    ]


def test_requirements_txt_lists_the_default_rooms():
    listed = re.findall(r"^-e (\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert listed == [".", *(f"./plugins/{room.name}" for room in ROOMS if room.name not in OPT_IN)]


def test_sigma_ml_requires_the_default_rooms():
    listed = re.findall(r"^-e \./plugins/(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    required = {Requirement(line).name for line in project(ROOT / "plugins" / "sigma-ml")["dependencies"]}
    assert required == {"sigma-kernel", *listed} - {"sigma-ml"}


def test_the_readme_has_the_two_commands_and_ci_runs_the_second():
    readme = (ROOT / "README.md").read_text()
    assert INSTALL in readme
    assert CHECK in readme
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "set -eu" in script.read_text()
    assert "tox" in script.read_text()


def test_the_hooks_before_a_commit_download_nothing():
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"^  - repo: (.*)$", text, re.MULTILINE)) == {"local"}
    assert text.count("- id: ") == text.count("language: system")
    assert GENERATE in text


def test_every_test_environment_is_described():
    tox = ConfigParser()
    tox.read(ROOT / "tox.ini")
    pythons = {"py312", "py313", "py314"}  # one section
    names = {name.removeprefix("testenv:") for name in tox.sections() if name.startswith("testenv:")}
    listed = {re.sub(r"\s", "", name) for name in tox["tox"]["env_list"].split(",")}
    apart = {"peers", "gallery", "first-looks", "long", "lowest", "changed", "py3{12,13,14}"}
    assert listed == (names - apart) | {"tests"} | pythons
    label, _, of_ci = tox["tox"]["labels"].strip().partition(" = ")
    assert (label, {*of_ci.split(", ")}) == ("ci", listed | {"peers"})
    assert "-m ci" in (ROOT / ".ci" / "run").read_text()
    assert all(tox[section].get("description") for section in tox.sections() if section.startswith("testenv"))


# -- decisions ---------------------------------------------------------------------------------------------------------
DECISIONS = sorted(ROOT.glob("docs/decisions/2*.md"))


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_date_its_reason_and_what_follows(page):
    text = page.read_text()
    day = date.fromisoformat(page.name[:10])
    assert text.startswith(f"# {day.day} {day:%B %Y}: ")
    assert re.findall(r"^\*\*([\w ]+)\.\*\* ", text, re.MULTILINE) == ["Decision", "Why", "What follows"]


def test_the_index_lists_every_decision():
    listed = re.findall(r"^\| .* \| \[.*\]\((.*)\) \|$", (ROOT / "docs/decisions/index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.name for page in DECISIONS]


# -- changes -----------------------------------------------------------------------------------------------------------
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
KINDS = "|".join(kind["directory"] for kind in SETTINGS["towncrier"]["type"])


def list_faults(folder: Path) -> list[str]:
    """Return what is wrong with the changes in a folder: misnamed files, and files without an entry."""
    files = [path for path in sorted(folder.iterdir()) if path.name not in SETTINGS["towncrier"]["ignore"]]
    misnamed = [f"{path.name}: name" for path in files if not re.fullmatch(rf"[a-z0-9-]+\.({KINDS})\.md", path.name)]
    return misnamed + [f"{path.name}: text" for path in files if re.match(r"\s*$|[-*#] ", path.read_text())]


def test_every_change_has_a_valid_name_and_an_entry():
    assert list_faults(ROOT / SETTINGS["towncrier"]["directory"]) == []


def test_misnamed_and_empty_changes_are_found(tmp_path):
    texts = {
        "a.fixed.md": "Mended.",
        "README.md": "",
        "b.removed.md": "x",
        "C d.added.md": "x",
        "e.added.md": "\n",
        "f.added.md": "- x",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert list_faults(tmp_path) == ["C d.added.md: name", "b.removed.md: name", "e.added.md: text", "f.added.md: text"]


def test_the_changelog_has_one_place_for_releases():
    assert (ROOT / "CHANGELOG.md").read_text().count(SETTINGS["towncrier"]["start_string"]) == 1


# -- required versions -------------------------------------------------------------------------------------------------
PROJECTS = [ROOT / "pyproject.toml", *(room / "pyproject.toml" for room in ROOMS)]
IN_QUOTES = re.compile(r'"((?!sigma-)[a-z][\w-]*(?:\[\w+\])? ?[<>=~!][^"]*)"')  # a template is no TOML yet
IN_A_LINE = re.compile(r"^(?:deps =|   ) ([a-z][\w-]*(?:\[\w+\])? ?[<>=~!]=.*)$", re.MULTILINE)


def list_versions(text: str, pattern: re.Pattern[str], *operators: str) -> set[tuple[str, str]]:
    """Return the libraries that a text requires, each with the versions that it names by some operators."""
    required = (one for one in map(Requirement, pattern.findall(text)) if not one.name.startswith("sigma-"))
    return {(one.name, part.version) for one in required for part in one.specifier if part.operator in operators}


def list_floors() -> set[tuple[str, str]]:
    template = (FOLDER / "project" / "pyproject.toml.txt").read_text()
    texts = [template, *(f'"{line}"' for line in (*REQUIRED, *LIBRARIES.values())), *map(Path.read_text, PROJECTS)]
    return set().union(*(list_versions(text, IN_QUOTES, ">=", "~=") for text in texts))


def test_all_distributions_and_the_template_require_the_same_version_of_a_library():
    names = Counter(name for name, _ in list_floors())
    assert names.keys() >= {"attrs", "numpy", "pytest"}
    assert {version for version in list_floors() if names[version[0]] > 1} == set()


def test_the_versions_of_a_text_are_found():
    text = 'dependencies = ["attrs[tests] >=24.1,<30", "torch ==2.13.0", "sigma-data ~=0.1", ">=3.11"]'
    assert list_versions(text, IN_QUOTES, ">=", "~=") == {("attrs", "24.1")}
    assert list_versions("deps = ruff ~=0.17\n    jax >=0.8\n    -r file", IN_A_LINE, ">=", "~=") == {
        ("ruff", "0.17"),
        ("jax", "0.8"),
    }


def test_tox_neither_needs_later_versions_than_the_distributions_nor_pins_earlier_ones():
    floors, tox = dict(list_floors()), (ROOT / "tox.ini").read_text()
    needed, pinned = list_versions(tox, IN_A_LINE, ">=", "~="), list_versions(tox, IN_A_LINE, "==")
    assert [one for one in needed if Version(one[1]) > Version(floors.get(one[0], one[1]))] == []
    assert [one for one in pinned if Version(one[1].removesuffix(".*")) < Version(floors.get(one[0], "0"))] == []


# -- rooms -------------------------------------------------------------------------------------------------------------
@by_name
def test_a_room_has_the_required_files(room):
    package = room / room.name.replace("-", "_")
    for path in (
        "LICENSE",
        "README.md",
        f"{package.name}/__init__.py",
        f"{package.name}/py.typed",
    ):
        assert (room / path).is_file(), path
    if room.name in WITHOUT_COMPONENTS:
        return
    assert (package / "plugin.py").is_file()
    apart = (room / "tests" / "peers" / "test_plugin.py").is_file()  # of a room that needs JAX or PyTorch
    assert apart != (room / "tests" / "test_plugin.py").is_file()
    assert not apart or {path.parent.name for path in room.glob("tests/**/test_*.py")} == {"peers"}
    assert f"python -m pip install {room.name}" in (room / "README.md").read_text()


@by_name
def test_a_room_is_a_distribution_of_this_project(room):
    described = project(room)
    assert described["name"] == room.name
    assert described["version"] == sigma_kernel.__version__
    assert described["license"] == "MIT"
    assert described["license-files"] == ["LICENSE"]  # beside pyproject.toml: flit_core takes no path of a parent
    assert (room / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    major, minor, _ = sigma_kernel.__version__.split(".")
    assert f"sigma-kernel ~={major}.{minor}" in described["dependencies"]


ADDRESS = project(ROOT)["urls"]["Repository"]
SHOWN = [ROOT / "sigma_kernel" / "README.md", *(room / "README.md" for room in ROOMS)]  # by an index, without this tree


@by_name
def test_a_room_says_where_it_is_from_as_the_kernel_does(room):
    described, kernel = project(room), project(ROOT)
    assert {key: described[key] for key in ("urls", "classifiers")} == {k: kernel[k] for k in ("urls", "classifiers")}


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.parent.name)
def test_the_links_of_a_page_that_an_index_shows_are_absolute_and_lead_to_files(page):
    links = re.findall(r"\]\(([^)]+)\)", page.read_text())
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    own = [link.partition("#")[0].removeprefix(f"{ADDRESS}/") for link in links if link.startswith(f"{ADDRESS}/")]
    assert [link for link in own if not re.match("(blob|tree)/main/", link)] == []
    assert [link for link in own if not (ROOT / link.split("/", 2)[2]).exists()] == []


@of_plugins
def test_a_plugin_has_one_entry_point_and_one_for_each_command(room):
    package, entries = room.name.replace("-", "_"), project(room)["entry-points"]
    assert {*entries} <= {"sigma_kernel.plugins", "sigma_kernel.verbs"}
    assert list(entries["sigma_kernel.plugins"].values()) == [f"{package}.plugin"]
    records = run_path(str(room / package / "plugin.py"))["sigma_components"]()  # whether or not it is installed
    commands = {record.name: record.path for record in records if record.kind == "verb"}
    assert entries.get("sigma_kernel.verbs", {}) == commands


@by_name
def test_a_room_imports_another_only_if_it_declares_the_dependency(room):
    known = {other.name for other in ROOMS}
    extras = project(room).get("optional-dependencies", {})
    lines = [
        *project(room)["dependencies"],
        *(line for name in ("check", "run", "selftest", "step", "store", "training") for line in extras.get(name, ())),
    ]
    named = {name for name in known if any(re.match(rf"{name}\b(?!-)", line) for line in lines)}
    own = room.name.replace("-", "_")
    used = set()
    for path in (room / own).rglob("*.py"):
        used |= set(re.findall(r"^\s*(?:from|import) (sigma_\w+)", path.read_text(), re.MULTILINE))
    assert {name.replace("_", "-") for name in used - {own, "sigma_kernel"}} <= named


@pytest.mark.rooms
def test_the_kernel_lists_the_components_of_its_rooms():
    table = generate.table(plugin for plugin in catalogue().plugins if plugin.name in {room.name for room in ROOMS})
    assert rooms.PATH.read_text("utf-8") == table, f"Run {GENERATE}"


def test_the_kernel_lists_the_existing_and_the_planned_rooms():
    table = json.loads(rooms.PATH.read_text("utf-8"))
    assert set(table["offered"]) == {room.name for room in PLUGINS}
    assert set(table["planned"]) >= OPT_IN - {room.name for room in ROOMS}
    assert not set(table["planned"]) & set(table["offered"])


@pytest.mark.rooms
def test_component_names_are_unique_across_rooms():
    taken: dict[tuple[str, str], str] = {}
    for component in (one for one in catalogue().components() if one.distribution in rooms.offers()):
        assert (component.kind, component.name) not in taken, component
        taken[component.kind, component.name] = component.distribution


@pytest.mark.rooms
def test_all_installed_rooms_are_ready():
    assert {
        plugin.name: plugin.reason for plugin in find() if plugin.name in rooms.offers() and plugin.state != "ready"
    } == {}


def test_no_file_contains_a_machine_specific_path_or_a_registry():
    words = "|".join(
        ["/ro" + "ot/", "/tm" + "p/", "/wo" + "rk/", "/ho" + "me/", "py" + r"pi\.org", "pythonho" + "sted"]
    )
    tops = [path for path in ROOT.iterdir() if not path.name.startswith(".")]  # others change while tox installs
    for path in (*tops, *(file for top in tops if top.is_dir() for file in top.rglob("*"))):
        apart = any(name.startswith(".") or name in MADE_ON_THE_WAY for name in path.relative_to(ROOT).parts)
        if not apart and path.suffix in (".py", ".toml", ".md", ".txt", ".ini", ".cfg"):
            assert not re.findall(words, path.read_text()), path


def test_the_name_of_a_test_is_a_sentence():
    for path in [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/**/test_*.py")]:
        for name in re.findall(r"^ *(?:async )?def (test_\w*)", path.read_text(), re.MULTILINE):
            assert len(name.split("_")) >= 3, f"{path.name}: {name}"
