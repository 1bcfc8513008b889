"""The palette: by the keyboard alone, everything is found by some of its letters, in either language."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
KEEP = "async () => { window.kept = (await import('./store.js')).store; }"
KNOWN = """() => {
    const { commands, entries } = window.kept.get();
    return commands.length > 0 && entries.length > 0;
}"""
FIT = """async ([query, ...texts]) => {
    const { find } = await import("./finder/fuzzy.js");
    return find(texts.map((text) => ({ texts: [text] })), query, 9).map(({ item, places }) => [item.texts[0], places]);
}"""


@pytest.fixture
def window(training: Any, visit: Any) -> Any:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    window.page.evaluate(KEEP)
    window.page.wait_for_function(KNOWN)
    return window


def search(page: Any, text: str) -> Any:
    """Open the palette by its keys, type, and return the option that is chosen."""
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill(text)
    return chosen(page)


def chosen(page: Any) -> Any:
    """Return the option of the palette that is chosen."""
    return page.get_by_role("listbox", name=re.compile("Find anything|Alles finden")).get_by_role(
        "option", selected=True
    )


@pytest.mark.parametrize(
    ("query", "texts", "right"),
    [
        ("lr", ["trainer.optimiser.learning_rate", "trainer.color"], "trainer.optimiser.learning_rate"),
        ("vacc", ["validate.scale", "validation.accuracy"], "validation.accuracy"),
        ("opt rate", ["trainer.optimiser.learning_rate", "optimiser"], "trainer.optimiser.learning_rate"),
        ("verzogern", ["Verlauf", "Verzögern"], "Verzögern"),
        ("loss", ["trainer.training.loss.of.something", "loss"], "loss"),
        ("one iteration", ["Iterationen", "iteration moon lane"], "iteration moon lane"),  # no letter counts twice
    ],
)
def test_the_letters_of_a_query_are_found_in_their_order_at_the_beginnings_of_words_first(
    window: Any, query: str, texts: list[str], right: str
) -> None:
    found = window.page.evaluate(FIT, [query, *texts])
    assert found[0][0] == right
    marked = "".join(right[at] for at in found[0][1]).replace("ö", "o").casefold()
    assert sorted(marked) == sorted(query.replace(" ", ""))
    assert window.page.evaluate(FIT, [query[::-1] + "q", *texts]) == []


def test_a_value_is_found_by_some_letters_and_set_without_a_pointer(training: Any, window: Any) -> None:
    page = window.page
    assert "trainer.optimiser.learning_rate" in search(page, "optlearate").inner_text()
    page.keyboard.press("Enter")
    field = page.get_by_role("dialog").get_by_role("textbox", name="Learning rate")
    field.wait_for()
    page.wait_for_function("id => document.activeElement.id === id", arg=field.get_attribute("id"))
    page.keyboard.press("Control+a")
    page.keyboard.type("0.00002")
    page.keyboard.press("Enter")
    applied = page.get_by_role("dialog").get_by_text(re.compile("^applied @ [0-9,]+$"))
    applied.wait_for()
    told = training.sigma("get", "learning_rate", "--json", "--run", str(training.results))
    assert json.loads(told) == {"trainer.optimiser.learning_rate": 0.00002}
    applied.wait_for()  # also once the journal tells it
    page.get_by_role("dialog").get_by_role("button", name="Back to 3·10⁻⁵").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Find anything").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert window.complaints == []


def count(text: str) -> int:
    """Return a number that the page shows with its thousands."""
    return int(text.replace(",", ""))


def test_a_value_that_cannot_be_set_is_shown_as_it_is_now(window: Any) -> None:
    page = window.page
    assert "trainer.training.loss" in search(page, "training.loss").inner_text()
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog").locator(".finder-value b")
    shown.filter(has_text=re.compile(r"^[0-9.]+(·?10\S+)?$")).wait_for()
    page.get_by_role("button", name="Back to the list").click()
    page.get_by_role("combobox", name="Find anything").fill("trainer.iteration")  # which never stays, as a loss may
    page.keyboard.press("Enter")
    shown.filter(has_text=re.compile("^[0-9,]+$")).wait_for()
    before = shown.inner_text()
    page.wait_for_function("before => document.querySelector('.finder-value b').textContent !== before", arg=before)
    assert count(shown.inner_text()) > count(before)
    page.get_by_role("button", name="Back to the list").click()
    page.get_by_role("combobox", name="Find anything").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_views_actions_and_commands_are_done(training: Any, window: Any) -> None:
    page = window.page
    search(page, "journ")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash === '#journal'")
    search(page, "pause")
    page.keyboard.press("Enter")
    playback = page.get_by_role("region", name="Playback")
    playback.get_by_text("Paused", exact=True).wait_for()
    search(page, "continue")
    page.keyboard.press("Enter")
    playback.get_by_text("Training", exact=True).wait_for()
    search(page, "undo")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Send", exact=True).wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Find anything").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_what_is_done_on_the_charts_that_are_shown_leaves_the_address_as_it_is(window: Any) -> None:
    page = window.page
    page.evaluate("() => window.kept.set({ range: [1, 5] })")
    page.wait_for_function("() => location.hash === '#train?zoom=1,5'")
    before = page.evaluate("history.length")
    assert "Logarithmic axis" in search(page, "logarithmic axis").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash === '#train?log=1&zoom=1,5'")
    assert page.evaluate("history.length") == before


def test_a_refusal_is_shown_beside_the_command_that_was_refused(window: Any) -> None:
    page, why = window.page, "there is nothing to undo"
    fate = {"state": "refused", "why": why, "command": "undo"}
    page.evaluate("fate => window.kept.set({ fates: { 'command.given': fate } })", fate)
    search(page, "undo")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(why).wait_for()
    dialog.get_by_label("Which").select_option("rewind")
    dialog.get_by_text(why).wait_for(state="detached")


@pytest.mark.parametrize("size", [(390, 844), (320, 640)])
def test_a_phone_has_a_button_for_the_palette(training: Any, visit: Any, size: tuple[int, int]) -> None:
    page = visit(size).page
    page.goto(training.link)
    page.get_by_role("button", name="Find anything").click()
    page.get_by_role("combobox", name="Find anything").wait_for()
    run, tools = (page.locator(part).bounding_box() for part in (".top .run", ".top .top-end"))
    assert run["y"] == tools["y"], "they stand in one row"


def test_german_and_english_words_find_the_same(window: Any) -> None:
    page = window.page
    for query in ("Netz", "Network"):
        assert "Network" in search(page, query).inner_text()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="hidden")
    page.get_by_role("button", name="DE: auf Deutsch").click()
    assert page.get_by_role("button", name="Alles finden").get_attribute("title") == "Alles finden (Strg K)"
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Alles finden")
    for query in ("one iteration", "eine Iteration"):
        field.fill(query)
        assert "Eine Iteration" in chosen(page).inner_text()
    page.keyboard.press("Control+k")
    page.get_by_role("button", name="FR: en français").click()
    page.get_by_role("button", name="EN: in English").click()


def test_the_arrows_choose_and_the_option_is_told_to_screen_readers(window: Any) -> None:
    page = window.page
    search(page, "")
    field = page.get_by_role("combobox", name="Find anything")
    options = page.get_by_role("listbox", name="Find anything").get_by_role("option")
    for key, at in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("ArrowUp", 0), ("ArrowUp", -1)):
        page.keyboard.press(key)
        chosen = options.nth(at if at >= 0 else options.count() - 1)
        assert chosen.get_attribute("aria-selected") == "true"
        assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    field.fill("xqzv")
    page.get_by_role("dialog").get_by_text("Nothing is called like that.").wait_for()
    page.keyboard.press("Enter")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").wait_for(state="hidden")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_palette_violates_no_rule_of_accessibility(training: Any, visit: Any, theme: str) -> None:
    window = visit((1440, 900), theme)
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    window.page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    search(window.page, "learning")
    assert window.page.evaluate(JUDGE, TAGS) == []
    window.page.keyboard.press("Enter")
    window.page.get_by_role("dialog").get_by_role("textbox").first.wait_for()
    assert window.page.evaluate(JUDGE, TAGS) == []
    assert window.complaints == []


def test_a_run_of_a_folder_is_found_and_opened(visit: Any, tmp_path: Path) -> None:
    for name in ("first-one", "second-one"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.toml").write_text("[trainer.optimiser]\ntype = 'adam'\n")
        (tmp_path / "runs" / name / "summary.json").write_text(json.dumps({"status": "finished", "metrics": {}}))
    command = [sys.executable, "-m", "sigma_run", "ui", "runs", "--no-open"]
    with subprocess.Popen(command, cwd=tmp_path, text=True, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            link = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
            window = visit()
            window.page.goto(link)
            window.page.get_by_text("connected", exact=True).wait_for()
            window.page.keyboard.press("Control+k")
            window.page.get_by_role("combobox", name="Find anything").fill("first")
            window.page.get_by_role("option", name=re.compile("first-one")).click()
            window.page.wait_for_url(re.compile(r"\?run=first-one#train"))
            window.page.get_by_text("connected", exact=True).wait_for()
        finally:
            process.terminate()
