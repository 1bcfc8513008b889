"""One name, one number: what the page shows is what the shell tells, and words say which number it is."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

ORIGIN = """async ([rows, value]) => {
  const { Settings } = await import("./origin.js"), { told } = await import("./charts/marks.js");
  const entry = { address: "trainer.optimiser.learning_rate", value, tags: [] };
  const journal = rows.map((row, i) => [i + 1, { trainer: "trainer", ...row }]);
  const settings = new Settings();
  told(journal, "trainer", [], () => 0.1, settings);
  return settings.origin(entry)?.at ?? null;
}"""
USUAL = """async (addresses) => {
  const { usual, series } = await import("./charts/lanes.js");
  const entries = addresses.map((address) => ({ address, type: "number", settable: /rate$/.test(address), tags: [] }));
  return usual(entries, "trainer").map((lane) => [lane.id, series(lane, entries, "trainer").map((one) => one.address)]);
}"""
BEST = """async () => {
  const { Stretch } = await import("./series.js"), { makeScene } = await import("./charts/scene.js");
  const { layout } = await import("./charts/shape.js"), { refresh } = await import("./charts/shown.js");
  const { curves } = await import("./series.js"), { store } = await import("./store.js");
  const address = "trainer.validation.accuracy", entry = { address, type: "number", value: 0.5, tags: [] };
  const lane = { id: "x", patterns: [address], tall: 194 };
  const moments = { branch: 0, iteration: [4, 8, 9], epoch: [1, 2, 3], second: [1, 2, 3] };
  const rows = { ...moments, value: [0.5, 0.6, 0.7], low: [0.1, 0.6, 0.7], high: [0.9, 0.6, 0.7] };
  curves.take({ [address]: { next: 3, whole: true, stretches: [rows] } });
  const scene = makeScene({ ...store.get(), entries: [entry] }, [lane]);
  refresh([entry], scene.found, 0.9, Infinity);
  return layout(lane, [entry], scene, { width: 800, small: false, tight: false }).items[0].best;
}"""


def set_to(value: float, at: int, **more: Any) -> dict[str, Any]:
    return {"command": "set", "pattern": "optimiser.learning_rate", "value": value, "iteration": at, **more}


def test_the_value_of_a_setting_comes_from_the_command_that_is_still_in_force(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)

    def origin(rows: list[dict[str, Any]], value: float) -> int | None:
        found: int | None = window.page.evaluate(ORIGIN, [rows, value])
        return found

    first, second, back = set_to(0.2, 10), set_to(0.3, 20), {"command": "rewind", "iteration": 30, "branch": 1}
    attached = {"command": "attach", "name": "more", "iteration": 15}
    undone = {"command": "undo", "undoes": "set", "iteration": 25}
    assert origin([], 0.1) is None
    assert origin([first, second], 0.3) == 20
    assert origin([first, second, undone], 0.2) == 10
    assert origin([first, second, undone, undone], 0.1) is None
    assert origin([first, attached, {**undone, "undoes": "attach"}], 0.2) == 10  # which was no setting
    assert origin([first, second, {**back, "to": 15}], 0.2) == 10
    assert origin([first, second, {**back, "to": 5}], 0.1) is None
    assert origin([first, second, {**back, "to": 20}], 0.2) == 10  # a state from before the command of its iteration
    assert origin([first, second, {**back, "to": 20}], 0.3) == 20  # or from after it
    assert origin([first, second, undone, {**back, "to": 22}], 0.3) == 20  # nor is an undo that a rewind leaves
    assert origin([first, second, undone, {**back, "to": 25}], 0.3) == 20
    assert origin([first, second, undone, {**back, "to": 25}], 0.2) == 10
    assert origin([{**first, "pattern": "**.learning_rate"}], 0.2) == 10
    assert origin([{**first, "pattern": "**.decay"}], 0.1) is None
    assert origin([first, set_to(0.4, 12, by="schedule"), undone], 0.4) == 12  # an undo is of a person's command
    assert origin([set_to(0.4, 12, by="schedule"), undone], 0.4) == 12


def test_the_usual_charts_show_what_a_run_is_about(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    text = ["training.loss", "training.epoch.loss", "validation.loss", "validation.bits_per_character"]
    adversarial = [
        "training.loss", "training.skipped", "training.cost.fooled", "training.cost.known", "validation.average.loss",
        "validation.average.cost.fooled", "validation.average.pictures.maximum_mean_discrepancy",
        "optimisers.critic.learning_rate", "optimisers.generator.learning_rate", "data.holdout.rows",
        "holdout.accuracy", "elsewhere.accuracy",
    ]  # fmt: skip

    def usual(names: list[str]) -> dict[str, list[str]]:
        found = window.page.evaluate(USUAL, [f"trainer.{name}" for name in names])
        return {lane: [address.removeprefix("trainer.") for address in series] for lane, series in found}

    assert usual(text) == {
        "loss": ["training.loss", "validation.loss"],
        "bits_per_character": ["validation.bits_per_character"],
    }
    assert usual(adversarial) == {
        "loss": ["training.loss", "validation.average.loss"],
        "accuracy": ["holdout.accuracy", "elsewhere.accuracy"],
        "maximum_mean_discrepancy": ["validation.average.pictures.maximum_mean_discrepancy"],
        "cost.fooled": ["training.cost.fooled", "validation.average.cost.fooled"],
        "cost.known": ["training.cost.known"],
        "rate": ["optimisers.critic.learning_rate", "optimisers.generator.learning_rate"],
    }
    assert usual([]) == {"loss": []}


def test_the_best_value_is_that_of_all_points_also_of_those_that_are_joined(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    assert window.page.evaluate(BEST) == {"at": 0, "value": 0.9, "newest": False}


def test_the_page_and_the_shell_tell_the_same_numbers_and_which_they_are(training: Any, visit: Any) -> None:
    window = visit()
    page = window.page

    def got(address: str) -> Any:
        (value,) = json.loads(training.sigma("get", address, "--json", "--run", str(training.results))).values()
        return value

    page.goto(training.link)
    page.get_by_role("img", name=re.compile(r"training now \S+, smoothed, \d{3}")).first.wait_for(timeout=120_000)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("region", name="Playback").get_by_text("Paused", exact=True).wait_for()
    page.wait_for_timeout(500)
    done = page.get_by_role("term").filter(has_text="Epochs done").locator("xpath=following-sibling::dd").inner_text()
    assert int(done.split()[0]) == got("trainer.epoch")
    page.get_by_label("Smoothing").fill("0")
    last = page.get_by_role("img", name=re.compile("training now .*, of the last iteration")).first
    last.wait_for()
    shown = float(re.search(r"training now ([\d.]+), of", last.get_attribute("aria-label"))[1])
    assert abs(shown - got("trainer.training.loss")) < 0.0006
    told = training.sigma("get", "trainer.training.loss", "--run", str(training.results))
    assert told.split(maxsplit=2)[2].strip() == "of the last iteration"
    told = training.sigma("get", "trainer.training.epoch.loss", "--run", str(training.results))
    assert told.split(maxsplit=2)[2].strip() == "mean of the epoch so far"


def test_the_note_below_a_value_is_true_after_undo_and_rewind(training: Any, visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(training.link)
    playback = page.get_by_role("region", name="Playback")
    knob = page.get_by_role("region", name="Live values")
    rate, note = knob.get_by_role("textbox", name="Learning rate"), knob.locator("[data-rate] .fate")
    note.get_by_text("as in the configuration").wait_for()
    begun = rate.input_value()
    if page.get_by_role("button", name="Pause", exact=True).count():
        page.get_by_role("button", name="Pause", exact=True).click()
    playback.get_by_text("Paused", exact=True).wait_for()

    def iteration() -> str:
        told = page.get_by_role("term").filter(has_text="Iteration").locator("xpath=following-sibling::dd")
        return str(told.inner_text().split()[0])

    def give(value: str) -> str:
        at = iteration()
        rate.fill(value)
        rate.press("Enter")
        note.get_by_text(f"applied @ {at}").wait_for()
        return at

    def train() -> None:
        before = iteration()
        page.get_by_role("button", name="Epoch", exact=True).click()
        for _ in range(200):
            page.wait_for_timeout(50)
            if iteration() != before:
                return playback.get_by_text("Paused", exact=True).wait_for()
        raise AssertionError("no epoch was trained")

    def undo() -> None:
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("u")

    train()
    first = give("0.002")
    train()
    training.sigma("attach", "more", '{type = "f1", on = "validation"}', "--run", str(training.results))
    undo()  # of that, and not of the value
    page.get_by_role("listitem").filter(has_text="more").wait_for(state="detached")
    assert note.inner_text().startswith(f"applied @ {first}")
    assert give("0.003") != first
    undo()
    note.get_by_text(f"applied @ {first}").wait_for()
    assert rate.input_value() == "0.002"
    undo()
    note.get_by_text("as in the configuration").wait_for()
    assert rate.input_value() == begun
    again = give("0.004")
    train()
    give("0.005")
    training.sigma("rewind", again.replace(",", ""), "--run", str(training.results))
    told = training.sigma("get", "trainer.optimiser.learning_rate", "--json", "--run", str(training.results))
    (value,) = json.loads(told).values()  # the newest state that was kept may be of before any of these commands
    words = {0.002: f"applied @ {first}", 0.004: f"applied @ {again}"}.get(value, "as in the configuration")
    note.get_by_text(words).wait_for()
    assert float(rate.input_value()) == value < 0.005
    assert window.complaints == []


def test_the_ticks_of_a_rate_over_many_decades_do_not_overlap(training: Any, visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(training.link)
    knob = page.get_by_role("region", name="Live values")
    rate, note = knob.get_by_role("textbox", name="Learning rate"), knob.locator("[data-rate] .fate")
    note.wait_for()
    if page.get_by_role("button", name="Pause", exact=True).count():
        page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("region", name="Playback").get_by_text("Paused", exact=True).wait_for()
    for value in ("0.01", "1e30"):
        rate.fill(value)
        rate.press("Enter")
        note.get_by_text("applied").wait_for()
        page.reload()
        note.get_by_text("applied").wait_for()
        boxes = [tick.bounding_box() for tick in knob.locator("[data-rate] .ticks span").all()]
        assert len(boxes) >= 4
        for before, after in pairwise(boxes):
            assert before["x"] + before["width"] < after["x"], value
