"""Every view is accessible, complains of nothing and asks no other host; the keyboard reaches all of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

VENDOR = Path(__file__).parent / "vendor"
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")]
    .filter((one) => !one.disabled && one.checkVisibility({ visibilityProperty: true }) && one.tabIndex >= 0)
    .map((one, at) => (one.dataset.place = String(at)))"""


def test_the_judge_is_the_published_one() -> None:
    for row in json.loads((VENDOR / "manifest.json").read_text())["files"]:
        assert hashlib.sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["sha256"]
        assert "Mozilla Public License" in (VENDOR / row["licence_file"]).read_text()


def views(window: Any) -> list[str]:
    """Return the views in the order of the header."""
    links = window.page.get_by_role("navigation", name="Views").get_by_role("link")
    links.first.wait_for()
    return [link.get_attribute("href") for link in links.all()]


def see(window: Any, view: str) -> None:
    """Open a view, and wait until it has what it shows."""
    window.page.evaluate("view => { location.hash = view; }", view)
    window.page.get_by_role("heading", level=1).wait_for()
    window.page.wait_for_timeout(700)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_view_violates_a_rule_of_accessibility(training: Any, visit: Any, size: str, theme: str) -> None:
    window = visit(SIZES[size], theme)
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for(state="attached")
    window.page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    found = {}
    for view in views(window):
        see(window, view)
        found[view] = window.page.evaluate(JUDGE, TAGS)
        wide = window.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{view} is {wide} pixels too wide"
    assert {view: wrong for view, wrong in found.items() if wrong} == {}
    assert window.complaints == []
    assert {urlsplit(url).netloc for url in window.requests} == {urlsplit(training.link).netloc}


def test_the_tab_key_reaches_everything_that_can_be_used(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    window.page.get_by_role("button", name="Pause", exact=True).press(" ")
    window.page.get_by_role("region", name="Playback").get_by_text("Paused", exact=True).wait_for()
    for view in views(window):
        see(window, view)
        wanted, reached = set(window.page.evaluate(REACHABLE)), set()
        window.page.evaluate("document.activeElement.blur()")
        for _ in range(2 * len(wanted) + 4):
            window.page.keyboard.press("Tab")
            reached.add(window.page.evaluate("document.activeElement.dataset.place"))
        missed = [
            window.page.locator(f"[data-place='{at}']").evaluate("one => one.outerHTML") for at in wanted - reached
        ]
        assert missed == [], view
    window.page.get_by_role("button", name="Continue").click()
    window.page.get_by_role("region", name="Playback").get_by_text("Training", exact=True).wait_for()


def test_keys_play_pause_step_and_change_views(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    playback = window.page.get_by_role("region", name="Playback")
    playback.get_by_text("Training", exact=True).wait_for()
    window.page.keyboard.press(" ")
    playback.get_by_text("Paused", exact=True).wait_for()
    for at, view in enumerate(views(window), 1):
        window.page.keyboard.press(str(at))
        window.page.wait_for_function("view => location.hash === view", arg=view)
    window.page.keyboard.press("?")
    window.page.get_by_role("dialog").wait_for()
    window.page.keyboard.press("Escape")
    window.page.get_by_role("dialog").wait_for(state="hidden")
    window.page.keyboard.press(" ")
    playback.get_by_text("Training", exact=True).wait_for()
