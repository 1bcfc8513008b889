"""The page of the documentation about datasets of Hugging Face runs."""

from __future__ import annotations

import re
from pathlib import Path

import datasets

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "huggingface.md"
BLOCK = re.compile(r"^```\{code-block\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    datasets.disable_progress_bars()
    names: dict[str, object] = {}
    for text in BLOCK.findall(PAGE.read_text()):
        exec(compile(text, PAGE.name, "exec"), names)
