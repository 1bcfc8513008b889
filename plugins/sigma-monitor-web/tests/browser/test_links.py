"""A link holds what is seen: anyone who opens it sees the same; back and forward go where one was."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from attrs import define, field, frozen

from sigma_http.passwords import hash_password
from sigma_kernel.contracts import StateEntry
from sigma_monitor_web.accounts import Account, write_accounts
from sigma_testing import FakeTrainerView, FakeView

from .serving import serve_view

VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
STATE = """async () => {
    const { axis, logAxis, range, pins, picked, part, spots } = (await import("./store.js")).store.get();
    return { axis, logAxis, range, pins, picked: picked?.iteration ?? null, part, spots };
}"""
PUT = "patch => window.kept.set(patch)"
KEEP = "async () => { window.kept = (await import('./store.js')).store; }"
SAME = "([name, value]) => JSON.stringify(window.kept.get()[name]) === JSON.stringify(value)"
ROUND = """async ([view, patch]) => {
    const { hashOf, stateOf } = await import("./link.js"), { store } = await import("./store.js");
    const state = { ...store.get(), ...patch }, hash = hashOf(state, view);
    return [hash, stateOf(hash, { ...store.get(), spots: {} }), stateOf(`#${view}?x`, state)];
}"""
EPOCHS = {"first": 3, "second": 30}  # of the trainers of a pair, at their state of iteration 300
MOMENT = {"iteration": 400, "epoch": 40, "second": 4.0}
PASSWORD = "a few words of mine"
PARTED = """async (hash) => {
    const { token, hash: left } = (await import("./entering.js")).parted(hash);
    return [token, left];
}"""


def enter(window: Any, link: str) -> Any:
    window.page.goto(link)
    window.page.get_by_text("connected", exact=True).wait_for()
    window.page.evaluate(KEEP)
    window.page.wait_for_function("() => window.kept.get().states.length > 0")
    return window.page


@frozen(eq=False)
class OwnStates(FakeTrainerView):
    """A trainer of a pair: both have a state of the same iteration, after epochs of their own."""

    view: Pair
    name: str = ""

    def states(self) -> list[StateEntry]:
        self.view.asked.append(self.name)
        return [StateEntry(300, EPOCHS[self.name], kept=True, saved=False)]


@define(eq=False)
class Pair(FakeView):
    """A run of two trainers, which notes whose states were asked for."""

    asked: list[str] = field(factory=list)

    def trainer(self, name: str) -> FakeTrainerView:
        return OwnStates(self, name)


def log_in(page: Any) -> None:
    form = page.get_by_role("region", name="Log in")
    form.get_by_label("Name", exact=True).fill("anna")
    form.get_by_label("Password", exact=True).fill(PASSWORD)
    form.get_by_role("button", name="Log in").click()


def reach(page: Any, hash: str) -> None:
    """Wait until the address is written, or that one is gone to."""
    page.wait_for_function("hash => location.hash === hash", arg=hash)


@pytest.mark.parametrize(
    ("view", "patch", "hash"),
    [
        ("train", {"axis": "clock", "range": [10.5, 20.25]}, "#train?axis=clock&zoom=10.5,20.25"),
        ("train", {"logAxis": True, "pins": [{"iteration": 7}, {"iteration": 9.5, "second": 3.25}]},
         "#train?log=1&pins=7,9.5@3.25"),
        ("data", {"part": "profile", "spots": {"data.label": 3, "network.layer": "2-dense"}},
         "#data?part=profile&label=3"),
        ("data", {"spots": {"data.label": "3", "data.predicted": "a b&c", "data.order": "null"}},
         "#data?label=%223%22&predicted=a%20b%26c&order=%22null%22"),
        ("network", {"axis": "clock", "spots": {}}, "#network"),
    ],
)  # fmt: skip
def test_what_is_seen_becomes_a_hash_and_the_hash_what_is_seen(
    training: Any, visit: Any, view: str, patch: dict[str, Any], hash: str
) -> None:
    page = enter(visit(), training.link)
    made, back, bare = page.evaluate(ROUND, [view, patch])
    assert made == hash
    for name, value in patch.items():
        if name == "spots":
            assert back["spots"] == {key: one for key, one in value.items() if key.startswith(f"{view}.")}
        elif view in ("train", "data"):
            assert back[name] == value
    assert "axis" not in bare or bare["axis"] == "iteration"


@pytest.mark.parametrize("zoom", ["", "1", "2,1", "a,b", "1,2,3", "NaN,1"])
def test_a_zoom_that_is_none_is_the_whole_run(training: Any, visit: Any, zoom: str) -> None:
    page = enter(visit(), training.link)
    page.evaluate("hash => { location.hash = hash; }", f"#train?zoom={zoom}&axis=nothing&pins=x,@3,4@y")
    page.wait_for_function("() => !location.hash.includes('nothing')")
    state = page.evaluate(STATE)
    assert (state["range"], state["axis"], state["pins"]) == (None, "iteration", [])


def test_the_token_is_parted_from_a_link_to_a_view(training: Any, visit: Any) -> None:
    page = enter(visit(), training.link)
    for hash, parts in (
        ("#token=abc-_", ["abc-_", ""]),
        ("#train?zoom=1,2&token=abc", ["abc", "#train?zoom=1,2"]),
        ("#data?token=abc", ["abc", "#data"]),
        ("#train?zoom=1,2", [None, "#train?zoom=1,2"]),
        ("", [None, ""]),
    ):
        assert page.evaluate(PARTED, hash) == parts


def test_whoever_opens_a_link_sees_the_same(training: Any, visit: Any) -> None:
    page = enter(visit(), training.link)
    page.get_by_role("button", name="Epochs", exact=True).click()
    page.locator("#score .lanes").press("+")
    page.locator("#score .lanes").press("+")
    page.wait_for_function("() => location.hash.includes('zoom=')")
    page.get_by_role("button", name="Share", exact=True).click()
    field = page.get_by_label("Link to exactly this")
    page.wait_for_function("field => field.value === location.href", arg=field.element_handle())
    link, before = field.input_value(), page.evaluate(STATE)
    assert before["axis"] == "epoch"
    assert "token" not in link
    other = visit()
    token = training.link.partition("#")[2]
    page = enter(other, f"{link}&{token}")
    page.wait_for_function("() => window.kept.get().range !== null")
    assert page.evaluate(STATE) == before | {"range": pytest.approx(before["range"], rel=1e-11)}  # a link has 12 digits
    assert page.evaluate("location.href") == link
    assert other.complaints == []


def test_a_link_to_a_moment_chooses_the_state(training: Any, visit: Any) -> None:
    page = enter(visit(), training.link)
    playback = page.get_by_role("region", name="Playback")
    page.keyboard.press(" ")  # while it trains, states are dropped
    playback.get_by_text("Paused", exact=True).wait_for()
    page.keyboard.press("r")
    page.wait_for_function("() => location.hash.includes('at=')")
    at = re.search(r"at=(\d+)", page.evaluate("location.hash"))
    assert at
    hash = f"#train?at={at[1]}"
    page.keyboard.press("Escape")
    page.wait_for_function("() => !location.hash.includes('at=')")
    page.evaluate("hash => { location.hash = hash; }", hash)
    page.get_by_text(f"Rewind to {int(at[1]):,}", exact=False).first.wait_for()
    assert page.evaluate(STATE)["picked"] == int(at[1])
    page.keyboard.press("Escape")
    page.keyboard.press(" ")
    playback.get_by_text("Training", exact=True).wait_for()


def test_a_moment_of_another_trainer_waits_for_the_states_of_that_trainer(visit: Any) -> None:
    values = {f"{name}.{key}": value for name in EPOCHS for key, value in MOMENT.items()}
    window, view = visit(), Pair(names=[*EPOCHS], values=values)
    with serve_view(view) as link:
        page = window.page
        page.goto(link.replace("#", "#train?trainer=second&at=300&"))
        page.get_by_text("Rewind to 300, after epoch 30?").wait_for()
        assert "first" not in view.asked
        page.evaluate("() => { location.hash = '#train?trainer=first&at=300'; }")
        page.get_by_text("Rewind to 300, after epoch 3?").wait_for()
        page.get_by_role("button", name="first", exact=True).click()
        page.get_by_role("group", name="Another trainer").get_by_role("button", name="second").click()
        page.get_by_text("Rewind to 300").wait_for(state="detached")  # it would be a command for the other one
        page.evaluate(KEEP)
        page.wait_for_function("() => window.kept.get().states.some((one) => one.epoch === 30)")
        assert window.complaints == []


def test_a_moment_that_there_is_not_is_no_longer_waited_for(training: Any, visit: Any) -> None:
    page = enter(visit(), training.link.replace("#", "#train?at=0.5&"))
    page.wait_for_function("() => window.kept.get().awaited.at === undefined")
    assert page.evaluate(STATE)["picked"] is None


def test_who_may_no_longer_watch_is_asked_to_log_in_again(visit: Any, tmp_path: Path) -> None:
    people, anna = tmp_path / "people", {"anna": Account("anna", "steer", hash_password(PASSWORD))}
    write_accounts(people, anna)
    with serve_view(FakeView(), accounts=str(people)) as link:
        page = visit().page
        page.goto(link)
        log_in(page)
        page.get_by_text("connected", exact=True).wait_for()
        people.unlink()
        page.get_by_role("heading", name="Log in", exact=True).wait_for()
        assert not page.get_by_text("This link is invalid").count()
        log_in(page)
        page.get_by_role("alert").filter(has_text="The accounts cannot be read now.").wait_for()
        write_accounts(people, anna)
        log_in(page)
        page.get_by_text("connected", exact=True).wait_for()


def test_back_and_forward_go_where_one_was(training: Any, visit: Any) -> None:
    page = enter(visit(), training.link)
    page.evaluate(PUT, {"range": [1, 5]})
    reach(page, "#train?zoom=1,5")
    views = page.get_by_role("navigation", name="Views")
    views.get_by_role("link", name="Data").click()
    page.get_by_role("button", name="Profile", exact=True).click()
    reach(page, "#data?part=profile")
    views.get_by_role("link", name="Journal").click()
    reach(page, "#journal")
    page.evaluate(PUT, {"range": None, "part": "rows"})
    page.go_back()
    reach(page, "#data?part=profile")
    page.wait_for_function(SAME, arg=["part", "profile"])
    page.go_back()
    reach(page, "#train?zoom=1,5")
    page.wait_for_function(SAME, arg=["range", [1, 5]])
    page.go_forward()
    page.go_forward()
    reach(page, "#journal")
    views.get_by_role("link", name="Train").click()  # the view alone: the zoom stays as it is
    reach(page, "#train?zoom=1,5")


def test_the_command_that_trains_the_run_again_is_copied(training: Any, visit: Any) -> None:
    window = visit()
    page = enter(window, training.link)
    address = urlsplit(training.link)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=f"http://{address.netloc}")
    page.get_by_role("button", name="Share", exact=True).click()
    field = page.get_by_label("Command that trains this run again")
    field.wait_for()
    command = shlex.split(field.input_value())
    assert command[:3] == ["sigma", "run", "digits"]
    assert "trainer.optimiser.learning_rate=3e-05" in command or "trainer.optimiser.learning_rate=0.00003" in command
    page.get_by_role("group", name="Share").get_by_role("button", name="Copy").nth(2).click()
    page.get_by_role("group", name="Share").get_by_text("Copied.").wait_for()
    page.get_by_role("status").filter(has_text="Copied.").wait_for()  # which screen readers hear
    assert page.evaluate("navigator.clipboard.readText()") == field.input_value()
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert page.evaluate(JUDGE, TAGS) == []
    assert window.complaints == []
