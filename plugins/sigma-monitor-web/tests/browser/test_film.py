"""The history of a run as a film: by button and key, at a pace, over a slow server, in every view."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field, frozen

from sigma_kernel.contracts import LayerEntry, RowLosses, StateEntry
from sigma_testing import FakeTrainerView, FakeView

from .serving import hear_messages, serve_view

VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
LAST = 400  # the iteration of now
STATES = [*range(10, LAST, 10)]
SLOW = 0.25  # seconds that losses of an earlier moment take
WEIGHTS = "trainer.network.layers.1-dense.weights"
LAYERS = [
    LayerEntry("0-input", "input", (), (2,), {}, {"section": "inputs"}),
    LayerEntry("1-dense", "dense", ("0-input",), (3,), {WEIGHTS: (2, 3)}, {}),
]
DUE = """async (given) => {
    const { due } = await import("./film.js"), states = given.map((iteration) => ({ iteration }));
    return [[20, 1], [20, 3], [25, 1], [50, 1], [20, 9]].map(([at, n]) => due(states, at, n)?.iteration ?? null);
}"""
NEWEST = """async () => {
    const { newestAt, arrange } = await import("./media/arrange.js");
    const entry = (iteration, is_left) => ({ iteration, is_left, seconds: iteration, branch: 1, key: `${iteration}` });
    const entries = [entry(10, false), entry(20, true), entry(30, false), entry(34, false)];
    const scene = { sx: (x) => x, axis: { place: (x) => x }, frame: { left: 0, right: 500, width: 500 } };
    const shown = (looked) => arrange(entries, scene, 72, looked).placed.map((one) => one.entry.iteration);
    const newest = [9, 10, 25, 33].map((at) => newestAt(entries, at)?.iteration ?? null);
    return [...newest, shown(null), shown(entries[0])];
}"""


@frozen(eq=False)
class Filmed(FakeTrainerView):
    """A trainer of which as many rows are wrong as its state is old, in tens of iterations."""

    view: Reel
    iteration: int = LAST

    def state(self, iteration: int) -> Filmed:
        return Filmed(self.view, iteration)

    def parameters(self) -> dict[str, np.ndarray]:
        return {WEIGHTS: np.full((2, 3), self.iteration / 100.0)}

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        time.sleep(self.view.slow if self.iteration < LAST else 0.0)
        wrong = (LAST - self.iteration) // 10
        predicted = (np.arange(50) < wrong).astype(int)
        losses = RowLosses(np.arange(50), np.full(50, self.iteration / 100.0), predicted, np.zeros(50, int))
        return losses if most is None else losses.worst(most)


LISTEN = """() => {
  window.shown = new Set();
  window.kept.subscribe(({ picked }) => { if (picked) window.shown.add(picked.iteration); });
}"""  # note which states are picked


@define(eq=False)
class Reel(FakeView):
    """A run with many states."""

    slow: float = 0.0
    shown: type[FakeTrainerView] = Filmed


@define(eq=False)
class Wire:
    """What goes over the connection of a page: requests about an earlier moment, and how many waited at once."""

    asked: list[tuple[str, int]] = field(factory=list)
    most: dict[str, int] = field(factory=dict)
    _open: dict[int, str] = field(factory=dict)

    def listen(self, page: Any) -> Wire:
        hear_messages(page, self._send, self._receive)
        return self

    def _send(self, request: Mapping[str, Any]) -> None:
        if "at" in request:
            self.asked.append((request["do"], request["at"]))
            self._open[request["id"]] = request["do"]
            waiting = [*self._open.values()].count(request["do"])
            self.most[request["do"]] = max(self.most.get(request["do"], 0), waiting)

    def _receive(self, answer: Mapping[str, Any]) -> None:
        if "event" not in answer:
            self._open.pop(answer["id"], None)


@pytest.fixture
def reel() -> Reel:
    values = {
        "trainer.iteration": LAST,
        "trainer.epoch": LAST // 10,
        "trainer.second": 40.0,
        WEIGHTS: np.full((2, 3), 4.0),
    }
    view = Reel(values=values, layers=LAYERS, measured={"trainer.training.loss": [1.0, 0.5]}, state="paused")
    view.kept = [StateEntry(at, at // 10, kept=True, saved=False) for at in STATES]
    return view


@pytest.fixture
def link(reel: Reel) -> Iterator[str]:
    with serve_view(reel) as found:
        yield found


def enter(window: Any, link: str, view: str = "", motion: str = "no-preference") -> Any:
    window.page.emulate_media(reduced_motion=motion)
    window.page.goto(link)
    window.page.get_by_text("connected", exact=True).wait_for(state="attached")
    window.page.evaluate("async () => { window.kept = (await import('./store.js')).store; }")
    window.page.wait_for_function("() => window.kept.get().states.length > 0 && window.kept.get().status")
    if view:
        window.page.get_by_role("navigation").get_by_role("link", name=view).click()
    return window.page


def picked(page: Any) -> int | None:
    found = page.evaluate("() => window.kept.get().picked?.iteration ?? null")
    return None if found is None else int(found)


def plays(page: Any) -> bool:
    return bool(page.evaluate("() => window.kept.get().playing"))


def pace(page: Any, text: str) -> None:
    page.get_by_label("Kept states a second").select_option(text)


def test_states_that_are_late_are_left_out_and_the_film_ends_with_now(link: str, visit: Any) -> None:
    page = enter(visit(), link)
    assert page.evaluate(DUE, [10, 20, 30, 40, 50]) == [30, 50, 30, None, None]


def test_the_media_of_a_moment_are_the_newest_of_its_line_and_have_room_first(link: str, visit: Any) -> None:
    page = enter(visit(), link)
    assert page.evaluate(NEWEST) == [None, 10, 10, 30, [34], [10]]


def test_the_button_plays_from_the_first_state_to_now_and_the_marker_follows(link: str, visit: Any) -> None:
    window = visit()
    page = enter(window, link)
    pace(page, "10")
    page.evaluate(LISTEN)
    page.get_by_role("button", name="Play the history").click()
    page.locator(".lane .pin.seen").first.wait_for(state="attached")
    first = page.locator(".lane .pin.seen").first.evaluate("(line) => line.style.transform")
    page.wait_for_function("() => window.kept.get().picked?.iteration > 100")
    assert page.locator(".lane .pin.seen").first.evaluate("(line) => line.style.transform") != first
    assert page.locator(".ask").count() == 0, "no question while it plays"
    page.get_by_role("button", name="Pause the history").wait_for()
    page.wait_for_function("() => !window.kept.get().playing", timeout=20_000)
    shown = page.evaluate("() => [...window.shown]")
    assert (shown[0], shown) == (STATES[0], sorted(shown))
    assert picked(page) is None
    assert page.locator(".pin.seen").count() == 0
    assert window.complaints == []


def test_the_key_plays_from_the_pointers_moment_and_touching_the_time_line_pauses(link: str, visit: Any) -> None:
    page = enter(visit(), link)
    page.keyboard.press("r")
    slider = page.locator("#rewind")
    for _ in range(3):
        slider.press("ArrowLeft")
    assert picked(page) == LAST - 40
    slider.evaluate("(one) => one.blur()")
    page.keyboard.press("p")
    assert (plays(page), picked(page)) == (True, LAST - 40)
    page.wait_for_function(f"() => window.kept.get().picked?.iteration > {LAST - 40}")
    box = page.locator(".timeline .plot").bounding_box()
    page.mouse.click(box["x"] + 200, box["y"] + 15)
    assert not plays(page)
    at = picked(page)
    page.wait_for_timeout(800)
    assert picked(page) == at
    page.keyboard.press("p")
    page.keyboard.press("p")
    assert (plays(page), picked(page)) == (False, at)
    page.get_by_text(f"Rewind to {at}", exact=False).wait_for()


def test_less_motion_has_no_more_than_one_state_a_second(link: str, visit: Any) -> None:
    page = enter(visit(), link, motion="reduce")
    pace(page, "10")
    page.evaluate("() => { window.begun = performance.now(); }")
    page.keyboard.press("p")
    page.wait_for_function("() => window.kept.get().picked?.iteration > 10")
    seconds, at = page.evaluate("() => [(performance.now() - window.begun) / 1000, window.kept.get().picked.iteration]")
    assert STATES.index(at) <= seconds, "more than one state a second"


def test_a_slow_server_is_asked_no_more_than_it_answers(reel: Reel, link: str, visit: Any) -> None:
    reel.slow = SLOW
    window = visit()
    wire = Wire().listen(window.page)
    page = enter(window, link, "Data")
    page.get_by_text("0 of 50 wrong").wait_for()
    page.evaluate("() => window.kept.set({ pace: 10 })")
    page.evaluate(LISTEN)
    page.keyboard.press("p")
    page.wait_for_function("() => !window.kept.get().playing", timeout=60_000)
    asked = [at for do, at in wire.asked if do == "confusion"]
    assert {"confusion", "losses"} <= wire.most.keys()
    assert set(wire.most.values()) == {1}, "a request was sent before the last one was answered"
    assert asked == sorted(asked)
    assert 3 < len(asked) < len(STATES) / 2, "a server that needs longer than a frame must make frames be left out"
    assert len(page.evaluate("() => [...window.shown]")) <= len(asked) + 2, "states were passed that no view has shown"
    page.get_by_text("0 of 50 wrong").wait_for()
    assert window.complaints == []


def test_every_view_shows_the_moment_and_goes_back_to_now(link: str, visit: Any) -> None:
    window = visit()
    wire = Wire().listen(window.page)
    page = enter(window, link)
    page.keyboard.press("p")
    page.keyboard.press("p")
    for view in ("Data", "Network"):
        page.get_by_role("navigation").get_by_role("link", name=view).click()
        page.get_by_text("As it was at iteration 10, after epoch 1").wait_for()
    page.get_by_text("trainer.network.layers.1-dense").wait_for()
    page.wait_for_function("() => document.querySelector('#v-network').textContent.includes('weights are kept')")
    assert ("layer", STATES[0]) in wire.asked
    page.get_by_role("navigation").get_by_role("link", name="Data").click()
    page.get_by_text("39 of 50 wrong").wait_for()
    page.get_by_text("loss at 10").wait_for()
    page.get_by_role("button", name="Back to now").click()
    page.get_by_text("0 of 50 wrong").wait_for()
    assert page.locator(".moment").count() == 0
    assert window.complaints == []


def test_whoever_may_only_read_plays_the_film_and_cannot_rewind(reel: Reel, link: str, visit: Any) -> None:
    page = enter(visit(), link)
    page.evaluate("() => window.kept.set(({ hello }) => ({ hello: { ...hello, scopes: ['read'] } }))")
    page.keyboard.press("p")
    page.keyboard.press("p")
    page.locator(".ask").get_by_text("As it was at iteration 10, after epoch 1").wait_for()
    assert page.locator(".ask").get_by_role("button").all_inner_texts() == ["Back to now"]
    page.locator("#rewind").press("Enter")
    assert not reel.sent


@pytest.mark.parametrize(("size", "theme"), [((1440, 900), "light"), ((390, 844), "dark")])
def test_axe_has_nothing_against_an_earlier_moment(link: str, visit: Any, size: tuple[int, int], theme: str) -> None:
    window = visit(size, theme)
    page = enter(window, link, motion="reduce")
    page.keyboard.press("p")
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert page.evaluate(JUDGE, TAGS) == []
    page.keyboard.press("p")
    assert page.evaluate(JUDGE, TAGS) == []
    for view in ("Network", "Data"):
        page.get_by_role("navigation").get_by_role("link", name=view).click()
        page.get_by_text("As it was at iteration").wait_for()
        assert page.evaluate(JUDGE, TAGS) == []
    assert window.complaints == []
