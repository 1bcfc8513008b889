"""The examples of the page about MPI run, and it and the README name all settings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest

from sigma_operator_mpi import MpiOperator

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "on-mpi.md"
README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```\{code-block\} (python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_block(language: str) -> str:
    [text] = [text for written, text in BLOCK.findall(PAGE.read_text("utf-8")) if written == language]
    return str(text)


def test_the_script_of_the_page_runs(jobs: Any) -> None:
    (jobs.folder / "script.py").write_text(find_block("python"))
    assert jobs.run(3, "script.py") == (0, "", "")


def test_the_configuration_of_the_page_is_valid() -> None:
    table = tomllib.loads(find_block("toml"))["trainer"]["operator"]
    assert MpiOperator(**{name: value for name, value in table.items() if name != "type"}).shards == 24


@pytest.mark.parametrize("page", [PAGE, README], ids=lambda page: page.name)
def test_all_settings_are_explained(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [one.name for one in attrs.fields(MpiOperator) if f"`{one.name}`" not in text] == []
