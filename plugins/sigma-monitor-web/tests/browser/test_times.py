"""The axis of times of day: where a moment is on it, how it is labelled, and the pauses of the run."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from sigma_kernel.contracts import AddressEntry
from sigma_kernel.periods import Period
from sigma_monitor_web.archive import Archive
from sigma_testing import FakeView

from .serving import serve_view

POINTS = 50
LOSS = "trainer.training.loss"
BEGUN = datetime(2026, 3, 28, 21, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
PAUSED = [Period(0, 0.0, BEGUN, 2.0), Period(0, 2.0, BEGUN + 600, 3.0)]
WALL = """async ([periods, branch, second]) => {
    const { makeWall } = await import("./charts/wall.js"), wall = makeWall(periods);
    const { origin, guessed, pauses } = wall ?? {};
    return wall && { at: wall.at(branch, second), places: [...wall.places(branch, [0, 2, 5, second])],
                     seconds: wall.seconds([0, 1e9]), origin, guessed, pauses };
}"""
TICKS = """async ([origin, low, high, most]) => {
    const { makeAxis } = await import("./charts/axis.js"), { makeWall } = await import("./charts/wall.js");
    const wall = makeWall([{ branch: 0, second: 0, time: origin, seconds: high }]);
    return makeAxis({ mode: "time", range: [low, high], reference: null, wall, passed: high }).ticks(most);
}"""
KEEP = "async () => { window.kept = (await import('./store.js')).store; }"
KNOWN = "count => (window.kept.get().periods?.length ?? 0) >= count"
SAID = "() => document.querySelector('.timeline canvas').ariaLabel?.includes('paused from')"


def row(branch: int, second: float, at: float, seconds: float = 0.0) -> dict[str, float]:
    return {"branch": branch, "second": second, "time": at, "seconds": seconds}


@contextmanager
def shown(visit: Any, trained: list[Period], **moment: Any) -> Iterator[Any]:
    """Return a window with a run of 50 iterations, 0.1 s each, that trained in these periods."""
    values = {"trainer.iteration": POINTS, "trainer.epoch": 5, "trainer.second": POINTS / 10, LOSS: 0.04}
    entries = {LOSS: AddressEntry(LOSS, "number", 0.04)}
    measured = {LOSS: 2 / np.arange(1, POINTS + 1)}
    view = FakeView(measured=measured, entries_of=entries, values=values, trained=trained, state="running", **moment)
    with serve_view(view) as link:
        window = visit()
        window.page.goto(link)
        window.page.get_by_role("img", name=re.compile("50 points")).wait_for()
        yield window
        assert window.complaints == []
        window.page.close()


@pytest.fixture(scope="module")
def page(browsers: Any, chromium: Any) -> Iterator[Any]:
    with shown(lambda: browsers.Visit.begin(chromium), PAUSED) as window:
        yield window.page


def test_a_moment_is_where_its_branch_was_then_and_pauses_are_between_the_periods(page: Any) -> None:
    periods = [row(0, 0, 1000, 8), row(0, 8, 1100, 4), row(1, 5, 1200, 5), row(1, 10, 1300, 2)]
    wall = page.evaluate(WALL, [periods, 0, 11.0])
    assert (wall["origin"], wall["at"]) == (1000, 103)
    assert wall["places"] == [0, 2, 5, 103]
    assert wall["pauses"] == [[8, 100], [104, 200], [205, 300]]
    assert page.evaluate(WALL, [periods, 1, 11.0])["at"] == 301
    assert page.evaluate(WALL, [periods, 1, 10.0])["at"] == 300
    assert wall["seconds"][0] == 0


def test_what_a_resume_repeats_is_where_it_was_repeated(page: Any) -> None:
    periods = [row(0, 0, 1000, 90), row(0, 60, 5000, 20)]
    assert page.evaluate(WALL, [periods, 0, 70.0])["at"] == 4010
    assert page.evaluate(WALL, [periods, 0, 50.0])["at"] == 50
    assert page.evaluate(WALL, [periods, 0, 70.0])["pauses"] == [[90, 4000]]
    killed = [row(0, 0, 1000, 10), row(0, 60, 5000, 20)]  # no row says that it trained for 60 s
    assert page.evaluate(WALL, [killed, 0, 40.0])["at"] == 40
    assert page.evaluate(WALL, [killed, 0, 40.0])["pauses"] == [[60, 4000]]


def test_a_run_without_times_has_no_wall_and_one_whose_beginning_has_none_is_guessed(page: Any) -> None:
    assert page.evaluate(WALL, [[], 0, 1.0]) is None
    assert page.evaluate(WALL, [None, 0, 1.0]) is None
    wall = page.evaluate(WALL, [[row(0, 100, 5000, 10)], 0, 40.0])
    assert (wall["origin"], wall["at"], wall["guessed"]) == (4900, 40, 100)


@pytest.mark.parametrize(("zone", "hours", "most"), [
    ("Europe/Berlin", 12, 6), ("America/New_York", 3, 9), ("Asia/Kolkata", 30, 5), ("Europe/Berlin", 0.02, 8),
    ("Europe/Berlin", 24 * 40, 7),
])  # fmt: skip
def test_ticks_are_whole_minutes_hours_and_days_of_the_zone_of_the_browser(
    page: Any, chromium: Any, zone: str, hours: float, most: int
) -> None:
    context = chromium.new_context(timezone_id=zone, locale="en-GB", storage_state=page.context.storage_state())
    local = context.new_page()
    local.goto(page.url)
    ticks = local.evaluate(TICKS, [BEGUN, 0, hours * 3600, most])  # into the day on which summer time begins in Berlin
    context.close()
    assert 2 <= len(ticks) <= most + 1
    for at, text in ticks:
        when = datetime.fromtimestamp(BEGUN + at, ZoneInfo(zone))
        if hours > 24 * 7 or (when.hour, when.minute, when.second) == (0, 0, 0):
            assert text == f"{when:%b} {when.day}"
            assert (when.hour, when.minute, when.second) == (0, 0, 0)
        else:
            assert text == (f"{when:%H:%M:%S}" if hours < 0.1 else f"{when:%H:%M}")
    steps = {round(other[0] - one[0]) for one, other in pairwise(ticks)}
    assert len(steps) == 1 or steps <= {86400 * n + d for n in range(1, 9) for d in (-3600, 0, 3600)}


def test_the_axis_shows_times_and_shades_the_pauses(page: Any) -> None:
    page.get_by_role("button", name="Time", exact=True).click()
    page.wait_for_function(SAID)
    zone = ZoneInfo(page.evaluate("() => Intl.DateTimeFormat().resolvedOptions().timeZone"))
    first, last = (datetime.fromtimestamp(BEGUN + second, zone) for second in (2, 600))
    said = page.locator(".timeline canvas").get_attribute("aria-label")
    assert f"{first:%H:%M:%S}" in said.partition("paused from")[2].partition("until")[0]
    assert f"{last:%H:%M:%S}" in said.partition("until")[2]
    page.wait_for_function("() => location.hash.includes('axis=time')")
    inside, outside = page.evaluate("""async () => {
        const canvas = document.querySelector(".timeline canvas"), pen = canvas.getContext("2d");
        const row = pen.getImageData(0, 4, canvas.width, 1).data;
        const color = (share) => row.slice(Math.round(canvas.width * share) * 4).slice(0, 4).join();
        return [color(0.5), color(0.9)];
    }""")
    assert inside != outside, "the pause takes most of the axis, and is grey"


def test_the_reading_says_the_time_of_day(page: Any) -> None:
    page.get_by_role("button", name="Time", exact=True).click()
    page.locator(".lanes").focus()
    page.keyboard.press("End")
    zone = page.evaluate("() => Intl.DateTimeFormat().resolvedOptions().timeZone")
    last = datetime.fromtimestamp(BEGUN + 603, ZoneInfo(zone))
    page.get_by_text(re.compile(f"iteration {POINTS}, .*{last:%H:%M:%S}")).first.wait_for()


def test_a_run_of_an_earlier_version_says_that_it_has_no_times(visit: Any) -> None:
    with shown(visit, []) as window:
        window.page.get_by_role("button", name="Time", exact=True).click()
        window.page.get_by_text("This run holds no times of day").wait_for()
    with shown(visit, [Period(0, 4.0, BEGUN, 1.0)]) as window:
        window.page.get_by_role("button", name="Time", exact=True).click()
        window.page.get_by_text(re.compile("Times before .* are guessed")).wait_for()


def test_a_pause_that_a_person_makes_is_on_the_axis_while_it_lasts_and_afterwards(training: Any, visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(training.link)
    page.get_by_role("button", name="Time", exact=True).click()
    page.evaluate(KEEP)
    page.wait_for_function(KNOWN, arg=1)
    page.get_by_role("button", name=re.compile("^Pause")).first.click()
    page.wait_for_function(SAID)
    time.sleep(2.5)
    page.get_by_role("button", name=re.compile("^Continue")).first.click()
    page.wait_for_function(KNOWN, arg=2)
    periods = page.evaluate("() => window.kept.get().periods")
    gap = periods[1]["time"] - periods[0]["time"] - periods[0]["seconds"]
    assert 2.4 < gap < 30
    told = Archive(training.results).trainer("trainer").periods()
    assert [one.time for one in told[:2]] == [one["time"] for one in periods[:2]], "the folder says the same"
    assert window.complaints == []
