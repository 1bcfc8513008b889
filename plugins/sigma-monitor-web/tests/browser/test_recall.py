"""Moments between the kept states: recomputed on the time line of a real run, with progress and a Cancel."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import Environment, EnvironmentView
from sigma_kernel.contracts import View
from sigma_monitor_control.protocol import recalls

from .serving import hear_messages, serve_view

VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
PATIENCE = 180_000  # milliseconds
LAST, BETWEEN = 24, 19  # iterations: of now, and one without a state
X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
DATA = {"inputs": X, "targets": X @ np.array([[1.0], [2.0], [3.0]], "float32")}


def make_run(folder: Path | None) -> Environment:
    """Return a run of four iterations an epoch."""
    sigma = Environment("recalled", folder=folder, seed=5)
    sigma.create_trainer(
        network="input(3) + dense(4) + dropout(0.2) + output(1) + squared_difference()", data=DATA, batch_size=10,
        optimiser={"type": "adam", "learning_rate": 0.01}, backend="numpy",
    )  # fmt: skip
    return sigma


@define(eq=False)
class ToldView:
    """A view of a run that notes what its monitor says."""

    view: View
    texts: list[str] = field(factory=list)
    over: threading.Event = field(factory=threading.Event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def wait(self, seconds: float) -> bool:
        return self.over.wait(seconds)

    def log(self, text: str) -> None:
        self.texts.append(text)


@define(eq=False)
class Wire:
    """The answers to requests of a page for a layer, by the moment that they are about."""

    layers: dict[int, Mapping[str, Any]] = field(factory=dict)
    _asked: dict[int, int] = field(factory=dict)

    def listen(self, page: Any) -> Wire:
        hear_messages(page, self._send, self._receive)
        return self

    def _send(self, request: Mapping[str, Any]) -> None:
        if request["do"] == "layer" and "at" in request:
            self._asked[request["id"]] = request["at"]

    def _receive(self, answer: Mapping[str, Any]) -> None:
        if "result" in answer and answer["id"] in self._asked:
            self.layers[self._asked[answer["id"]]] = answer["result"]


@pytest.fixture
def view(tmp_path: Path) -> Iterator[ToldView]:
    """Return the view of a run that pauses."""
    with make_run(tmp_path) as sigma:
        sigma.trainer("trainer").fit(iterations=LAST)
        yield ToldView(EnvironmentView(sigma, threading.Event()))


@pytest.fixture
def link(view: Any) -> Iterator[str]:
    with serve_view(view) as found:
        yield found


def enter(window: Any, link: str) -> Any:
    page = window.page
    page.goto(link)
    page.get_by_text("connected", exact=True).wait_for(state="attached")
    page.evaluate("async () => { window.kept = (await import('./store.js')).store; }")
    page.wait_for_function("() => window.kept.get().states.length > 0 && window.kept.get().status")
    return page


def wish(page: Any, at: int) -> None:
    """Choose an iteration by the keys of the time line."""
    slider = page.locator("#rewind")
    slider.focus()
    for _ in range(LAST - at):
        slider.press("Shift+ArrowLeft")


def test_a_moment_without_a_state_is_recomputed_by_keys_and_every_view_shows_its_true_weights(
    link: str, visit: Any
) -> None:
    window = visit()
    wire = Wire().listen(window.page)
    page = enter(window, link)
    wish(page, BETWEEN)
    page.get_by_text(f"No state of iteration {BETWEEN} is kept.").wait_for()
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert page.evaluate(JUDGE, TAGS) == []
    page.locator("#rewind").press("Enter")
    page.get_by_text("Recomputing: iteration").wait_for()
    assert page.evaluate(JUDGE, TAGS) == []
    page.get_by_text(f"As it was at iteration {BETWEEN}, after epoch 4").wait_for(timeout=PATIENCE)
    assert page.evaluate(JUDGE, TAGS) == []
    assert page.locator(".ask").get_by_role("button").all_inner_texts() == ["Back to now"], "it is not rewound to"
    assert "sigma fork recalled-" in page.locator(".ask code").inner_text()
    page.get_by_role("navigation").get_by_role("link", name="Network").click()
    page.get_by_text(f"As it was at iteration {BETWEEN}, after epoch 4").wait_for()
    page.wait_for_function("() => document.querySelector('#v-network').textContent.includes('weights are kept')")
    with make_run(None) as sigma:
        sigma.trainer("trainer").fit(iterations=BETWEEN)
        true = {name: np.asarray(x, np.float64) for name, x in sigma.trainer("trainer").parameters().items()}
    while BETWEEN not in wire.layers:  # its answer may come after the text
        page.wait_for_timeout(50)
    found = wire.layers[BETWEEN]
    assert found["at"] == BETWEEN
    for address, summary in found["parameters"].items():
        values = true[address.removeprefix("trainer.")]
        for name, value in (("mean", values.mean()), ("low", values.min()), ("high", values.max())):
            assert summary[name] == pytest.approx(value, rel=1e-6)
    assert window.complaints == []


def test_what_is_being_recomputed_can_be_cancelled_and_begun_again(view: ToldView, link: str, visit: Any) -> None:
    window = visit((390, 844), "dark")
    page = enter(window, link)
    page.locator("#rewind").press("ArrowLeft")
    page.get_by_label("Iteration", exact=True).fill(str(BETWEEN))
    page.get_by_label("Iteration", exact=True).press("Tab")
    page.get_by_role("button", name="Recompute this moment").click()
    page.get_by_role("button", name="Cancel recomputing").click()
    page.get_by_role("button", name="Recompute this moment").wait_for()
    (moment,) = recalls.recalled_moments(view).moments
    assert moment.is_cancelled
    assert moment.handle.wait(0.0), "its process has ended"
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert page.evaluate(JUDGE, TAGS) == []
    assert page.evaluate("() => window.kept.get().picked") is None
    page.get_by_role("button", name="Recompute this moment").click()
    page.get_by_text(f"As it was at iteration {BETWEEN}, after epoch 4").wait_for(timeout=PATIENCE)
    page.get_by_role("button", name="Back to now").click()
    assert page.evaluate("() => [window.kept.get().picked, window.kept.get().wished]") == [None, None]
    assert window.complaints == []


def test_a_moment_that_cannot_be_recomputed_says_why(view: ToldView, link: str, visit: Any) -> None:
    folder = view.folder
    assert folder is not None
    page = enter(visit(), link)
    wish(page, BETWEEN)
    (folder / "config.toml").rename(folder / "moved.toml")
    page.get_by_role("button", name="Recompute this moment").click()
    page.locator(".ask [role=alert]").wait_for(timeout=PATIENCE)
    assert "config.toml" in page.locator(".ask [role=alert]").inner_text()
    (folder / "moved.toml").rename(folder / "config.toml")
    page.get_by_role("button", name="Recompute this moment").wait_for()


def test_whoever_may_only_read_is_not_offered_to_recompute(link: str, visit: Any) -> None:
    page = enter(visit(), link)
    page.evaluate("() => window.kept.set(({ hello }) => ({ hello: { ...hello, scopes: ['read'] } }))")
    wish(page, BETWEEN)
    page.get_by_text(f"No state of iteration {BETWEEN} is kept.").wait_for()
    page.locator("#rewind").press("Enter")
    assert page.locator(".ask").get_by_role("button").all_inner_texts() == ["Back to now"]
    assert page.evaluate("() => window.kept.get().recalls") == []
