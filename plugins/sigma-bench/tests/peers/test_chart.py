"""Charts have the format of their suffix, and name every contestant and recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from sigma_bench.chart import draw

RESULTS = [
    {
        "recipe": recipe,
        "contestants": [
            {"name": name, "median_s": seconds * times, "spread_s": seconds / 10}
            for name, seconds in (("numba", 1e-4), ("torch", 3e-4))
        ],
    }
    for recipe, times in (("width x 1", 1), ("width x 2", 3))
]


def test_a_chart_names_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    draw(RESULTS, path)
    text = path.read_text()
    assert text.startswith("<?xml")
    for word in ("numba", "torch", "width x 1", "width x 2", "seconds per iteration"):
        assert word in text
    draw(RESULTS, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


def test_a_png_chart_is_a_png_file(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    draw(RESULTS[:1], path)
    assert path.read_bytes()[:4] == b"\x89PNG"
