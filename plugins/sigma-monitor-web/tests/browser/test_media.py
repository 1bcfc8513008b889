"""Media under the curves: at their moments, large, by keys alone, while a run trains and when it has ended."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts import HistogramValue, HookContext, PictureValue, SoundValue, TableValue, TextValue
from sigma_testing.doing import Do
from sigma_testing.steering import steered_environment

VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
LAST = 40
ROWS = ["shown.picture", "shown.text", "shown.sound", "shown.table", "shown.histogram"]
MIDDLES = """(row) => [...row.querySelectorAll(".moments li")].map((one) => {
  const box = one.getBoundingClientRect(), plot = one.closest(".plot").getBoundingClientRect();
  const ends = [box.left - plot.left, box.right - plot.left];
  return [one.querySelector("button .sr").textContent, (ends[0] + ends[1]) / 2, ...ends];
})"""


def publish(context: HookContext) -> None:
    at = context.moment.iteration
    context.publish("shown.picture", PictureValue(np.full((4, 4), at * 6, np.uint8)))
    context.publish("shown.text", TextValue(f"Written at {at}:\n<b>to be</b> or not", caption="by hand"))
    context.publish("shown.sound", SoundValue(0.3 * np.sin(np.arange(800) / 8), 8000))
    context.publish("shown.table", TableValue(["true class", "0", "1"], [["0", at, 1], ["1", 2, 30]], heat=True))
    context.publish("shown.histogram", HistogramValue([0, 1, 2, 4], [at, 5, 1]))


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the link to a run that has ended, with an edit, and a branch that was left after 30 of 40 iterations."""
    folder = tmp_path_factory.mktemp("shown")
    script = {
        12: lambda s: s.set("trainer.optimiser.learning_rate", 0.02),
        30: lambda s: s.rewind(20),
    }
    hooks = {"show": Do(does=publish, writes=["shown.*"])}
    with steered_environment(script, last=LAST, hooks=hooks) as sigma:
        sigma.folder = folder / "runs"
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    command = [sys.executable, "-m", "sigma_run", "ui", "runs", "--no-open"]
    with subprocess.Popen(command, cwd=folder, text=True, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            begin = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
            yield begin.replace("/#", f"/?run={run.name}#", 1)
        finally:
            process.terminate()


@pytest.fixture
def window(link: str, visit: Any) -> Any:
    window = visit()
    window.page.goto(link)
    rows(window.page).nth(len(ROWS) - 1).wait_for()
    return window


def rows(page: Any) -> Any:
    return page.get_by_role("group", name=re.compile("over time$")).locator("section")


def row(page: Any, name: str) -> Any:
    return page.get_by_role("region", name=name)


def test_each_name_has_a_row_with_thumbnails_at_their_moments_on_the_axis_of_the_charts(window: Any) -> None:
    page = window.page
    assert [rows(page).nth(i).get_by_role("heading").inner_text() for i in range(len(ROWS))] == ROWS
    row(page, "shown.picture").get_by_role("button").first.wait_for()
    places = row(page, "shown.picture").evaluate(MIDDLES)
    moments = [int(re.search(r"iteration (\d+)", name)[1]) for name, *_ in places]  # type: ignore[index]
    assert moments == sorted(moments)
    assert moments[-1] == LAST
    assert all(before[3] <= after[2] for before, after in pairwise(places)), "thumbnails overlap"
    inner = [(at, x) for at, (_, x, *_) in zip(moments, places, strict=True)][1:-1]
    steps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(inner)]
    assert max(steps) - min(steps) < 2 / 5, "moments are not evenly far apart: a pixel at each end of 5 iterations"
    assert window.complaints == []


def test_a_press_shows_one_large_and_the_arrow_keys_step_through_time(window: Any) -> None:
    page = window.page
    row(page, "shown.text").get_by_role("button").last.click()
    large = page.get_by_role("dialog")
    large.get_by_text(f"Written at {LAST}:\n<b>to be</b> or not").wait_for()
    large.get_by_text("by hand").wait_for()
    page.keyboard.press("ArrowLeft")
    large.get_by_text(f"Written at {LAST - 5}:").wait_for()
    page.keyboard.press("Home")
    large.get_by_text("Written at 5:").wait_for()
    assert large.get_by_role("button", name="The moment before").is_disabled()
    large.get_by_role("slider", name="Moment").press("ArrowRight")
    large.get_by_text("Written at 10:").wait_for()
    page.keyboard.press("Escape")
    large.wait_for(state="hidden")
    assert page.evaluate("document.activeElement.className").startswith("still text")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    large.get_by_role("heading", name="shown.text").wait_for()
    assert window.complaints == []


def test_a_sound_plays_a_table_is_read_and_a_picture_keeps_its_pixels(window: Any) -> None:
    page, large = window.page, window.page.get_by_role("dialog")
    row(page, "shown.sound").get_by_role("button").last.click()
    page.wait_for_function("() => document.querySelector('dialog audio')?.duration === 0.1")
    page.keyboard.press("Escape")
    row(page, "shown.table").get_by_role("button").last.click()
    large.get_by_role("row", name=f"0 {LAST} 1").wait_for()
    page.keyboard.press("Escape")
    row(page, "shown.picture").get_by_role("button").last.click()
    large.get_by_role("img").wait_for()
    assert large.get_by_role("img").evaluate("one => [one.naturalWidth, getComputedStyle(one).imageRendering]") == [
        4,
        "pixelated",
    ]
    page.keyboard.press("Escape")
    row(page, "shown.histogram").get_by_role("button").last.click()
    large.get_by_role("img", name=re.compile("values from 0 to 4, at most 40 in a bin")).wait_for()
    assert window.complaints == []


def test_a_branch_that_was_left_is_told(window: Any) -> None:
    page = window.page
    row(page, "shown.picture").get_by_role("button").last.click()
    slider = page.get_by_role("dialog").get_by_role("slider")
    told = [slider.get_attribute("aria-valuetext")]
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
        told.append(slider.get_attribute("aria-valuetext"))
        if page.get_by_role("dialog").get_by_text("on a branch that was left").is_visible():
            break
    page.get_by_role("dialog").get_by_text("on a branch that was left").wait_for()
    assert any("iteration 40, branch 1" in str(one) for one in told)


@pytest.mark.parametrize(("size", "theme"), [((1440, 900), "light"), ((1440, 900), "dark"), ((390, 844), "light")])
def test_the_lane_is_accessible_in_each_look(link: str, visit: Any, size: tuple[int, int], theme: str) -> None:
    window = visit(size, theme)
    window.page.goto(link)
    rows(window.page).nth(len(ROWS) - 1).wait_for()
    window.page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert window.page.evaluate(JUDGE, TAGS) == []
    row(window.page, "shown.table").get_by_role("button").last.click()
    window.page.get_by_role("dialog").get_by_role("table").wait_for()
    assert window.page.evaluate(JUDGE, TAGS) == []
    assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert window.complaints == []


def test_the_lane_is_in_german(link: str, visit: Any) -> None:
    window = visit()
    window.page.goto(link.replace("#", "&language=de#", 1))
    window.page.get_by_text("12 Bilder").or_(window.page.get_by_text(re.compile(r"^\d+ Bilder$"))).first.wait_for()
    window.page.get_by_text(re.compile(r"^\d+ Klänge$")).wait_for()


def test_media_of_a_run_that_trains_appear_by_themselves(browsers: Any, visit: Any, tmp_path: Path) -> None:
    seen = ("--set", "hooks.see.type=filters", "--set", 'hooks.see.every="1 second"')
    with browsers.run(tmp_path, "digits", *browsers.ENDLESS, *browsers.SLOWLY, *seen) as run:
        window = visit()
        window.page.goto(run.link)
        own = row(window.page, "filters.network.layers.2-dense.weights")
        own.get_by_role("button").first.wait_for()
        before = own.get_by_text(re.compile(r"^\d+ pictures?$")).inner_text()
        own.get_by_text(re.compile(rf"^(?!{before}$)\d+ pictures$")).wait_for()
        assert window.complaints == []
