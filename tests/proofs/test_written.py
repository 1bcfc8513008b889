"""What runs write for later is equal to the byte to what was recorded: journals and configurations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proofs import folders, journals
from tests.proofs.configurations import FOLDER, from_python, of_recipe, recipes

pytestmark = pytest.mark.rooms

LATER = ('mode = "synchronous"', "every = 8", "plugins = []")  # settings that came after the folders were recorded


def test_scripted_runs_write_the_journals_that_were_recorded() -> None:
    assert journals.text() == journals.FILE.read_text("utf-8")


def test_the_recorded_journal_has_rows_of_every_command() -> None:
    lines = [line for line in journals.FILE.read_text("utf-8").splitlines() if line.startswith("{")]
    kinds = {row.get("command") or row.get("event") for row in map(json.loads, lines)}
    assert kinds - {None} == {
        "set", "pause", "go", "step", "stop", "save", "rewind", "reset", "attach", "detach", "swap", "undo", "exclude",
        "include", "relabel", "begin", "end", "data", "resumed",
    }  # fmt: skip


@pytest.mark.parametrize("name", recipes())
def test_the_complete_configuration_of_a_recipe_is_the_one_recorded(name: str) -> None:
    assert of_recipe(name) == (FOLDER / f"{name}.toml").read_text("utf-8")


def test_every_recipe_has_a_recorded_configuration() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted([*recipes(), "from-python"])


def test_a_run_described_from_python_writes_the_configuration_that_was_recorded() -> None:
    assert from_python() == (FOLDER / "from-python.toml").read_text("utf-8")


@pytest.mark.parametrize("script", [folders.commands, folders.failed, folders.fitted])
def test_a_run_folder_gets_the_configuration_of_the_recorded_one(script: Callable[[], Path]) -> None:
    recorded = folders.FOLDERS / script.__name__ / "config.toml"
    lines = journals.written(script)[1].splitlines()
    assert [line for line in lines if line not in LATER] == recorded.read_text("utf-8").splitlines()
