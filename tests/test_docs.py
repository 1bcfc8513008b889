"""The documentation is correct: its examples run, its files are valid, its commands and links exist."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import tomlkit

from sigma_kernel.plugins import rooms
from sigma_run.config import load
from sigma_run.launcher.group import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^```(python|toml|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


REST = {  # of a page's configuration that shows a part
    "format": 1,
    "data": {"dataset": "iris"},
    "network": {"architecture": "input(4) + dense(8) + output(3) + softmax_cross_entropy()"},
    "trainer": {"epochs": 1, "optimiser": {"type": "adam"}},
}


def completed(given: dict, rest: dict) -> dict:
    """Return a configuration with what it leaves out."""
    both = {key: completed(given[key], rest[key]) for key in rest if isinstance(given.get(key), dict)}
    without = {"optimiser"} if "optimisers" in given else set()
    return {**{key: value for key, value in rest.items() if key not in without}, **given, **both}


on_every_page = pytest.mark.parametrize("page", PAGES, ids=named)


def blocks(page: Path, language: str) -> list[str]:
    return [text for written, text in BLOCK.findall(page.read_text()) if written == language]


@pytest.mark.rooms
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_the_examples_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGMA_CONTROL")
    names: dict[str, object] = {"__name__": page.stem}
    for text in blocks(page, "python"):
        exec(compile(text, page.name, "exec"), names)


@pytest.mark.rooms
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=named)
def test_the_configurations_of_a_page_are_valid(page):
    for text in blocks(page, "toml"):
        given = tomllib.loads(text)
        if given.keys() <= {*REST, "run", "initialisers", "hooks", "monitors"} or "format" in given:
            assert load(text if "format" in given else tomlkit.dumps(completed(given, REST))).trainers


@pytest.mark.rooms
def test_the_layout_of_the_dashboard_is_valid():
    (text,) = blocks(ROOT / "docs/dashboard.md", "json")
    found = json.loads(text)
    import_module("sigma_monitor_web.layout").check(found, "layout.json", ["latest"])
    assert [tab["view"] for tab in found["tabs"]] == ["train", "data", "journal"]


@on_every_page
def test_the_commands_of_a_page_exist(page):
    lines = re.findall(r"^    (.*)$|`(sigma .*?)`", page.read_text(), re.MULTILINE)
    used = {name for pair in lines for name in re.findall(r"\bsigma ([a-z]+)", " ".join(pair))}
    assert used <= {*COMMANDS, *rooms.names("verb"), *rooms.names("command"), "greet", "damp"}


@on_every_page
def test_the_links_of_a_page_have_targets(page):
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
