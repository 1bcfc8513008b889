"""A panel of a plugin stands on its view, with what it asks of the run; the layout of tabs and panels is a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
LAYOUT = {
    "format": 1,
    "tabs": [
        {
            "view": "train",
            "panels": [],
            "axis": "epoch",
            "smoothing": 0.5,
            "charts": [{"patterns": ["trainer.*.loss"], "title": "How wrong it is", "log": False, "tall": 240}],
        },
        {"view": "journal", "panels": ["latest"]},
    ],
}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the panel of ``sigma plugins new --kind panel``, as if it were installed."""
    made = [sys.executable, "-m", "sigma_run", "plugins", "new", "acme-latest", "--kind", "panel"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    plugin = tmp_path / "acme-latest"
    about = plugin / "acme_latest-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: acme-latest\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[sigma_kernel.plugins]\nlatest = acme_latest.plugin\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(plugin), os.environ.get("PYTHONPATH")])))
    (tmp_path / "run").mkdir()


@pytest.fixture
def training(browsers: Any, plugin: None, tmp_path: Path) -> Iterator[Any]:
    """Return a run with the panel."""
    with browsers.run(tmp_path / "run", "digits", *browsers.ENDLESS, *browsers.SLOWLY) as run:
        yield run


def test_the_panel_of_a_new_plugin_is_drawn_with_the_loss(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_role("region", name="Latest").get_by_text(re.compile(r"^\d+(\.\d+)?(e-\d+)?$")).wait_for()
    assert window.complaints == []


@pytest.mark.parametrize("name", ["docs/kinds/panel.md", "docs/literature/around.md"])
def test_the_panels_of_the_docs_are_drawn_with_a_number(
    name: str, plugin: None, browsers: Any, tmp_path: Path, visit: Any
) -> None:
    [code] = re.findall(
        r'^SCRIPT = """.*?^"""\n\w+ = Panel\([^\n]*\)$', (ROOT / name).read_text(), re.MULTILINE | re.DOTALL
    )
    made = re.sub(r"^\w+ = Panel\(\"[^\"]*\"", 'latest = Panel("Latest"', code, flags=re.MULTILINE)
    (tmp_path / "acme-latest/acme_latest/latest_panel.py").write_text(f"from sigma_kernel import Panel\n\n{made}\n")
    with browsers.run(tmp_path / "run", "digits", *browsers.ENDLESS, *browsers.SLOWLY) as run:
        window = visit()
        window.page.goto(run.link)
        window.page.get_by_role("region", name="Latest").get_by_text(re.compile(r"^-?\d+(\.\d+)?(e-\d+)?$")).wait_for()
        assert window.complaints == []


@pytest.fixture
def laid_out(browsers: Any, plugin: None, tmp_path: Path) -> Iterator[Any]:
    """Return a run with the panel and a layout of two tabs."""
    (tmp_path / "run" / "mine.json").write_text(json.dumps(LAYOUT))
    layout = ("--set", 'monitors.web.layout="mine.json"')
    with browsers.run(tmp_path / "run", "digits", *browsers.ENDLESS, *browsers.SLOWLY, *layout) as run:
        yield run


def test_a_layout_is_shown_changed_saved_and_shown_again(laid_out: Any, visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(laid_out.link)
    page.get_by_text("connected", exact=True).wait_for()
    views = page.get_by_role("navigation", name="Views").get_by_role("link")
    assert views.all_inner_texts() == ["Train", "Journal"]
    page.get_by_role("heading", name="How wrong it is").wait_for()
    assert page.get_by_role("button", name="Epochs").get_attribute("aria-pressed") == "true"
    assert page.get_by_role("slider", name="Smoothing").input_value() == "0.5"
    assert page.get_by_role("region", name="Latest").count() == 0

    page.get_by_role("button", name="Options of How wrong it is").click()
    page.get_by_role("checkbox", name="Logarithmic").check()
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.get_by_role("region", name="Latest").wait_for()
    page.get_by_role("button", name="Layout").click()
    menu = page.get_by_role("group", name="Layout")
    menu.get_by_role("checkbox", name="Data").check()
    menu.get_by_role("checkbox", name="Latest").uncheck()
    menu.get_by_role("button", name="Save layout").click()
    menu.get_by_text("Saved in mine.json").wait_for()

    saved = json.loads((laid_out.folder / "mine.json").read_text())
    train, data, journal = saved["tabs"]
    assert (train["axis"], train["smoothing"], train["panels"]) == ("epoch", 0.5, [])
    assert train["charts"] == [{**LAYOUT["tabs"][0]["charts"][0], "log": True}]  # type: ignore[index]
    assert (data, journal) == ({"view": "data"}, {"view": "journal", "panels": []})

    again = visit()  # with storage of its own
    again.page.context.add_cookies(page.context.cookies())
    again.page.goto(page.url)
    again.page.get_by_text("connected", exact=True).wait_for()
    shown = again.page.get_by_role("navigation", name="Views").get_by_role("link")
    assert shown.all_inner_texts() == ["Train", "Data", "Journal"]
    assert again.page.get_by_role("region", name="Latest").count() == 0
    again.page.keyboard.press("1")
    again.page.get_by_role("button", name="Options of How wrong it is").click()
    assert again.page.get_by_role("checkbox", name="Logarithmic").is_checked()
    assert window.complaints == again.complaints == []
