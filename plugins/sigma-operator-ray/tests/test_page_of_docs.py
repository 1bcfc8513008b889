"""The examples of the page about Ray run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from sigma_operator_ray import RayOperator

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "on-ray.md"
BLOCK = re.compile(r"^```\{code-block\} (python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for written, text in BLOCK.findall(PAGE.read_text("utf-8")) if written == language]


@pytest.mark.usefixtures("address")
def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "ray_page"}
    for text in blocks("python"):
        exec(compile(text, PAGE.name, "exec"), names)


def test_the_configuration_of_the_page_is_valid() -> None:
    [text] = blocks("toml")
    assert (
        RayOperator(**{k: v for k, v in tomllib.loads(text)["trainer"]["operator"].items() if k != "type"}).workers == 8
    )
