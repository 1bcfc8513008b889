"""A map by UMAP, which takes long: cancelled, begun again, and of the moment that it names."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel import Environment, EnvironmentView

from .serving import serve_view
from .test_recall import JUDGE, LAST, TAGS, VENDOR, ToldView, enter, make_run

PATIENCE = 120_000  # milliseconds
EDITED = "() => window.kept.get().journal.length"
STAND_IN = """
import pathlib, time
class UMAP:
    def __init__(self, **settings):
        self.settings = settings
    def fit_transform(self, values):
        while pathlib.Path(__file__).with_name("slow").exists():
            time.sleep(0.1)
        return self.settings["init"]
"""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a library in the place of umap-learn; return the file that makes it slow."""
    home = tmp_path / "library"
    home.mkdir()
    (home / "umap.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(home))
    monkeypatch.setattr("sigma_monitor_control.protocol.positions.find_spec", lambda name: True)
    (home / "slow").touch()
    return home / "slow"


@pytest.fixture
def trained(slow: Path, tmp_path: Path) -> Iterator[Environment]:
    with make_run(tmp_path) as sigma:
        sigma.trainer("trainer").fit(iterations=LAST)
        yield sigma


@pytest.fixture
def link(trained: Environment) -> Iterator[str]:
    view: Any = ToldView(EnvironmentView(trained, threading.Event()))
    with serve_view(view) as found:
        yield found


@pytest.mark.parametrize("first", [True, False], ids=["after another map", "as the first map"])
def test_umap_that_is_cancelled_does_not_begin_again_by_itself(
    first: bool, link: str, trained: Environment, visit: Any
) -> None:
    window = visit()
    page = enter(window, link)
    if not first:
        page.evaluate("window.kept.set({ spots: { 'data.map_method': 'umap' } })")
    page.get_by_role("navigation").get_by_role("link", name="Data").click()
    page.get_by_role("button", name="Map", exact=True).click()
    if first:
        page.get_by_text(re.compile("of the variance · 40 of 40 rows")).wait_for(timeout=PATIENCE)
        page.locator(".map-card").get_by_label(re.compile("^By")).select_option("umap")
    page.locator("#map-cancel").wait_for()
    before = page.evaluate(EDITED)
    trained.send("exclude", trainer="trainer", split="training", rows=[1])  # the map is out of date
    page.wait_for_function(f"before => ({EDITED})() !== before", arg=before, timeout=PATIENCE)
    page.locator("#map-cancel").click()
    page.get_by_text("it was cancelled. Begin again, or use PCA.").wait_for(timeout=PATIENCE)
    assert page.locator("#map-cancel").count() == 0
    assert page.locator("canvas.map").count() == first
    assert window.complaints == []


def test_umap_is_cancelled_begun_again_and_computed_for_a_chosen_moment(slow: Path, link: str, visit: Any) -> None:
    window = visit()
    page = enter(window, link)
    page.get_by_role("navigation").get_by_role("link", name="Data").click()
    page.get_by_role("button", name="Map", exact=True).click()
    page.locator(".map-card").get_by_label(re.compile("^By")).select_option("umap")
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_text("it was cancelled").wait_for(timeout=PATIENCE)
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert page.evaluate(JUDGE, TAGS) == []
    slow.unlink()
    page.get_by_role("button", name="Compute again").click()
    page.get_by_text(f"UMAP · 40 of 40 rows · iteration {LAST}").wait_for(timeout=PATIENCE)
    assert page.locator("#map-cancel").count() == 0
    assert page.locator("#map-moment").count() == 0
    page.keyboard.press("p")
    page.keyboard.press("p")
    page.get_by_text("As it was at iteration").wait_for()
    at = page.evaluate("() => window.kept.get().picked.iteration")
    page.get_by_text("This map is of now, not of the chosen moment").wait_for()
    assert page.evaluate(JUDGE, TAGS) == []
    page.get_by_role("button", name="Compute again").click()
    page.get_by_text(f"UMAP · 40 of 40 rows · iteration {at}").wait_for(timeout=PATIENCE)
    assert page.locator("#map-moment").count() == 0
    page.get_by_role("button", name="Back to now").click()
    page.get_by_text(f"This map is of iteration {at}").wait_for()
    assert window.complaints == []
