"""The page of the documentation runs, where all default rooms are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "report.md"


def test_the_examples_of_the_page_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```\{code-block\} python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for text in blocks:
        exec(compile(text, PAGE.name, "exec"), names)
