"""The guide to ONNX: all its examples run, in their order, those for which ONNX Runtime is needed as well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "onnx.md"


def test_the_examples_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "onnx"}
    blocks = re.findall(r"^```(?:python|{code-block} python)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    for text in blocks:
        exec(compile(text, PAGE.name, "exec"), names)
