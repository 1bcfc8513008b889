"""The page of the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sigma_run.config import read
from sigma_search.settings import read_settings

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "search.md"


def test_the_examples_of_the_page_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```\{code-block\} python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for text in blocks:
        exec(compile(text, PAGE.name, "exec"), names)


def test_the_table_of_the_page_is_a_valid_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "search.toml"
    path.write_text(text)
    settings = read_settings(read(path))
    assert (settings.count, settings.parallel, settings.prune.type) == (40, 4, "median")
    assert settings.space["data.batch_size"].points() == [*range(16, 129, 16)]
    assert settings.space["trainer.optimiser.learning_rate"].points() is None
