"""The examples of the page about Ray run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "on-ray.md"
BLOCK = re.compile(r"^```\{code-block\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("address")
def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "ray_page"}
    for text in BLOCK.findall(PAGE.read_text("utf-8")):
        exec(compile(text, PAGE.name, "exec"), names)
