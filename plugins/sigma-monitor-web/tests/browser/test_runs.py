"""The view of runs: filters, order, marks, differences, and many more runs than rows."""

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

COUNT = 400
VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
SHOWN = "#v-runs tbody tr[aria-rowindex]"
FILLED = """([box, shown]) => {
  const { top, height } = box.getBoundingClientRect();
  const rows = [...document.querySelectorAll(shown)].map((row) => row.getBoundingClientRect());
  const drawn = (y) => rows.some((row) => row.top - 2 <= y && y <= row.bottom + 2);
  return [0.3, 0.6, 0.95].every((share) => drawn(top + height * share));
}"""  # rows are drawn where the box is


def write(runs: Path, number: int) -> None:
    run = runs / f"r{number:03}"
    run.mkdir(parents=True)
    kind = "adam" if number % 2 else "sgd"
    (run / "config.toml").write_text(f"[trainer.optimiser]\ntype = '{kind}'\nlearning_rate = {1 / (number + 1)}\n")
    metrics = {"validation.accuracy": number / COUNT}
    (run / "summary.json").write_text(json.dumps({"status": "finished", "epochs": 2, "metrics": metrics}))
    row = {
        "trainer": "trainer",
        "iteration": number,
        "command": "set",
        "pattern": "optimiser.learning_rate",
        "value": 0.5,
    }
    (run / "journal.jsonl").write_text(json.dumps(row) + "\n")
    os.utime(run / "config.toml", (number, number))


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Return a folder with many runs, and the link to its dashboard."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(COUNT):
        write(folder / "runs", number)
    command = [sys.executable, "-m", "sigma_run", "ui", "runs", "--no-open"]
    with subprocess.Popen(command, cwd=folder, text=True, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            yield folder, next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        finally:
            process.terminate()


@pytest.fixture
def window(link: tuple[Path, str], visit: Any) -> Any:
    window = visit()
    open_runs(window, link[1])
    return window


def open_runs(window: Any, link: str) -> None:
    window.page.goto(link)
    window.page.get_by_role("navigation").get_by_role("link", name="Runs").click()
    window.page.get_by_text(f"{COUNT} of {COUNT}").wait_for()


def names(page: Any) -> list[str]:
    return [str(text) for text in page.locator(f"{SHOWN} th code").all_inner_texts()]


def test_a_criterion_filters_and_a_wrong_one_is_told(window: Any) -> None:
    page = window.page
    field = page.get_by_role("searchbox", name="Filter")
    field.fill('validation.accuracy reaches 0.99 and trainer.optimiser.type equals "adam"')
    page.get_by_text(f"2 of {COUNT}").wait_for()
    assert names(page) == ["r399", "r397"]
    field.fill("validation.acuracy above 0.5")
    page.get_by_text("no run has this value. Did you mean 'validation.accuracy'?").wait_for()
    assert names(page) == ["r399", "r397"]
    field.fill("validation.accuracy above 2")
    page.get_by_text("The filter leaves no run.").wait_for()
    field.fill("")
    page.get_by_text(f"{COUNT} of {COUNT}").wait_for()
    assert window.complaints == []


def test_headings_sort_by_keyboard_as_well(window: Any) -> None:
    page = window.page
    assert names(page)[:2] == ["r399", "r398"]
    head = page.get_by_role("columnheader", name="validation.accuracy")
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    page.locator("th[aria-sort=descending]").get_by_text("validation.accuracy").wait_for()
    page.keyboard.press("Enter")
    page.locator(SHOWN).first.get_by_text("r000", exact=True).wait_for()
    assert head.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    page.locator(SHOWN).first.get_by_text("r399", exact=True).wait_for()
    assert window.complaints == []


def test_only_rows_in_view_are_drawn_and_all_can_be_reached(window: Any) -> None:
    page, seen = window.page, set(names(window.page))
    frame = page.get_by_role("group", name="All runs")
    assert frame.get_by_role("table").get_attribute("aria-rowcount") == str(COUNT + 1)
    for _ in range(100):
        assert page.locator(SHOWN).count() <= 120
        before = frame.evaluate(
            "(box) => { const at = box.scrollTop; box.scrollTop += box.clientHeight / 2; return at; }"
        )
        page.wait_for_timeout(50)
        page.wait_for_function(FILLED, arg=[frame.element_handle(), SHOWN])
        seen |= set(names(page))
        if frame.evaluate("(box) => box.scrollTop") == before:
            break
    assert seen == {f"r{number:03}" for number in range(COUNT)}
    assert window.complaints == []


def test_marks_are_kept_in_the_run_folder(window: Any, link: tuple[Path, str]) -> None:
    page, runs = window.page, link[0] / "runs"
    page.get_by_role("button", name="star r399").click()
    page.get_by_role("button", name="star r399", pressed=True).wait_for()
    page.get_by_role("button", name="name, tags and note of r398").click()
    page.get_by_role("textbox", name="Name").fill("The wide one")
    page.get_by_role("textbox", name="Tags").fill("base, two")
    page.get_by_role("textbox", name="Note").fill("look again")
    page.locator("form.marks").get_by_role("button", name="Save").click()
    page.get_by_text("The wide one").wait_for()
    page.get_by_text("look again").wait_for()
    marks = json.loads((runs / "r398" / "marks.json").read_text())
    assert marks == {"format": 1, "title": "The wide one", "tags": ["base", "two"], "note": "look again"}
    assert json.loads((runs / "r399" / "marks.json").read_text())["starred"] is True
    page.get_by_role("button", name="name, tags and note of r397").click()
    page.get_by_role("textbox", name="Tags").fill("not/one")
    page.locator("form.marks").get_by_role("button", name="Save").click()
    page.get_by_text("at most 50 tags, each of at most 40 letters").wait_for()
    page.get_by_role("button", name="Archive", exact=True).click()
    page.locator(SHOWN).get_by_text("r397", exact=True).wait_for(state="detached")
    page.get_by_role("checkbox", name="archived").check()
    page.get_by_role("button", name="name, tags and note of r397").click()
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("checkbox", name="archived").uncheck()
    page.locator(SHOWN).get_by_text("r397", exact=True).wait_for()
    for name in ("r397", "r398", "r399"):
        (runs / name / "marks.json").unlink()
    assert window.complaints == []


def test_two_chosen_runs_show_their_differences(window: Any) -> None:
    page = window.page
    for name in ("r398", "r397"):
        box = page.get_by_role("checkbox", name=f"overlay {name}")
        if not box.is_checked():
            box.check()
    for box in page.get_by_role("checkbox", name=re.compile("^overlay r39[0-69]")).all():
        if box.is_checked():
            box.uncheck()
    card = page.get_by_role("region", name="Differences")
    card.get_by_role("rowheader", name="trainer.optimiser.type").wait_for()
    line = card.get_by_role("row", name=re.compile("trainer.optimiser.type"))
    assert sorted(line.get_by_role("cell").all_inner_texts()) == ["adam", "sgd"]
    assert card.get_by_role("cell", name="set", exact=True).count() == 2
    assert window.complaints == []


@pytest.mark.parametrize(("size", "theme"), [((1440, 900), "light"), ((1440, 900), "dark"), ((390, 844), "light")])
def test_the_view_violates_no_rule_of_accessibility(
    link: tuple[Path, str], visit: Any, size: tuple[int, int], theme: str
) -> None:
    window = visit(size, theme)
    open_runs(window, link[1])
    page = window.page
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert page.evaluate(JUDGE, TAGS) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.get_by_role("button", name="name, tags and note of r399").click()
    assert page.evaluate(JUDGE, TAGS) == []
    if out := os.environ.get("SIGMA_PICTURES"):
        page.screenshot(path=f"{out}/runs-{size[0]}-{theme}.png")
    assert window.complaints == []
