"""The profile of the data and what is odd about them; baselines beside metrics, and as lines in the charts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120_000  # milliseconds: the process that reads the data gives way to training
TOML = """
format = 1
[run]
name = "shop"
[data]
batch_size = 32
[data.dataset]
type = "table"
path = "shop.csv"
target = "bought"
[network]
architecture = "input() + output() + softmax_cross_entropy()"
[trainer]
optimiser = { type = "adam", learning_rate = 1e-6 }
[hooks.score]
type = "accuracy"
on = "validation"
every = "1 epoch"
[hooks.finish]
type = "stop"
when = "epoch reaches 6"
"""


def write_shop(folder: Path) -> None:
    """Write a table of which a quarter of the rows come twice, and a column gives the target away."""
    rows = [
        f"{(i * 37) % 100 / 7:.2f},{'abc'[i % 3] if i % 10 else ''},{'yes' if i % 4 else 'no'},"
        f"{'open' if i % 4 else 'closed'}"
        for i in range(200)
    ]
    (folder / "shop.csv").write_text("\n".join(["size,kind,bought,state", *rows, *rows[:50], ""]))
    (folder / "shop.toml").write_text(TOML)


@pytest.fixture(scope="module")
def shop(browsers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a run on a table that trains."""
    folder = tmp_path_factory.mktemp("run")
    write_shop(folder)
    with browsers.run(folder, "shop.toml", *browsers.ENDLESS) as run:
        yield run


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Return the link to the runs of a folder."""
    command = [sys.executable, "-m", "sigma_run", "ui", "runs", "--no-open"]
    with subprocess.Popen(command, cwd=folder, text=True, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            yield next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def over(browsers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Return a folder with a run that has ended, and the link to its dashboard."""
    folder = tmp_path_factory.mktemp("ended")
    write_shop(folder)
    with browsers.run(folder, "shop.toml", monitor=False) as run:
        run.process.wait(PATIENCE / 1000)
    with served(folder) as link:
        yield folder, link


def open_profile(window: Any, link: str) -> Any:
    page = window.page
    page.goto(link)
    page.get_by_text("connected", exact=True).wait_for()
    page.get_by_role("navigation").get_by_role("link", name="Data").click()
    page.get_by_role("button", name="Profile").click()
    return page.get_by_role("region", name="Profile")


def test_a_run_that_trains_shows_its_columns_and_findings(shop: Any, visit: Any) -> None:
    window = visit()
    profile = open_profile(window, shop.link)
    table = profile.get_by_role("group", name="Columns").get_by_role("table")
    table.wait_for(timeout=PATIENCE)
    heads = [row.get_by_role("rowheader").inner_text().split()[0] for row in table.get_by_role("row").all()[1:]]
    assert heads == ["size", "kind", "bought", "state"]
    kind = table.get_by_role("row", name=re.compile("^kind"))
    assert kind.get_by_text("category").count()
    assert kind.get_by_text(re.compile(r"^10(\.\d)? %$")).count(), "one of ten has no kind"
    kind.get_by_role("img", name="Distribution of kind in 3 bars").wait_for()
    page = window.page
    findings = page.get_by_role("region", name="Findings").get_by_role("listitem")
    findings.filter(has_text="leak").filter(has_text="Warning").wait_for(timeout=PATIENCE)
    findings.filter(has_text="shared-rows").first.wait_for()
    splits = page.get_by_role("region", name="Splits").get_by_role("row", name=re.compile("^yes"))
    assert sum(int(cell) for cell in splits.get_by_role("cell").all_inner_texts() if cell) == 150 + 37
    assert page.get_by_role("region", name="Sample rows").get_by_role("row").count() == 9
    page.get_by_role("button", name="Rows", exact=True).click()
    page.get_by_role("region", name=re.compile("^Rows")).get_by_role(
        "button", name=re.compile("^row ")
    ).first.wait_for()
    assert window.complaints == []


def test_pictures_of_a_run_that_trains_come_as_a_grid_by_class(training: Any, visit: Any) -> None:
    window = visit((390, 844), "dark")
    page = window.page
    page.goto(training.link)
    page.get_by_text("connected", exact=True).wait_for(state="attached")
    page.get_by_role("navigation").get_by_role("link", name="Data").click()
    page.get_by_role("button", name="Profile").click()
    pictures = page.get_by_role("region", name="Sample pictures")
    pictures.wait_for(timeout=PATIENCE)
    assert pictures.get_by_role("heading", level=3).all_inner_texts() == [*"0123456789"]
    assert pictures.get_by_role("img", name=re.compile("^7, picture")).count() == 8
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert window.complaints == []


REFERENCES = """async ([results, address, bounds, log]) => {
    const { baselinesOf, linesOf, referencesOf, widened } = await import("./charts/references.js");
    const item = { name: "validation", hidden: false, entry: { address } }, hidden = { ...item, hidden: true };
    const references = referencesOf([item, hidden], results), wide = widened(bounds, references, log);
    return { own: baselinesOf(results, address), wide, lines: linesOf(references, wide, (y) => 200 - y, String) };
}"""


@pytest.mark.parametrize(
    ("bounds", "log", "wide", "drawn"),
    [
        ([40, 60], False, [33, 60], ["majority 33", "near 55"]),
        ([40, 60], True, [33, 60], ["majority 33", "near 55"]),
        ([54, 56], False, [54, 56], ["near 55"]),
        ([50, 50], False, [-1000, 55], ["majority 33", "near 55", "far -1000"]),
        ([50, 50], True, [33, 55], ["majority 33", "near 55"]),
    ],
)
def test_baselines_near_the_curves_are_drawn(
    training: Any, visit: Any, bounds: list[int], log: bool, wide: list[int], drawn: list[str]
) -> None:
    page = visit().page
    page.goto(training.link)
    values = {"majority": 33, "near": 55, "far": -1000, "odd": None}
    results = {"baselines": {name: {"validation.accuracy": value, "x": 1} for name, value in values.items()}}
    found = page.evaluate(REFERENCES, [results, "trainer.validation.accuracy", bounds, log])
    assert {one["name"]: one["value"] for one in found["own"]} == {"majority": 33, "near": 55, "far": -1000}
    assert found["wide"] == wide
    assert sorted(one["text"] for one in found["lines"]) == sorted(drawn)
    several = {"baselines": {"mean": {"second.validation.accuracy": 2}}}
    ask = [several, "trainer.validation.accuracy", bounds, log]
    assert page.evaluate(REFERENCES, ask)["own"] == [], "that is another trainer's"


def test_a_run_that_has_ended_shows_its_baselines(over: tuple[Path, str], visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(over[1])
    accuracy = page.get_by_role("region", name="Accuracy")
    accuracy.locator(".baselines").wait_for()
    names, texts = (accuracy.locator(f".baselines {tag}").all_inner_texts() for tag in ("dt", "dd"))
    values = dict(zip(names, texts, strict=True))
    assert {*values} == {"majority", "linear"}
    assert float(values["linear"].removesuffix("%")) == 100, "a column gives the answer away"
    accuracy.get_by_role("img", name=re.compile("baseline majority")).wait_for()
    page.get_by_role("note", name="About the results").get_by_text("no better than").wait_for()
    page.get_by_role("navigation").get_by_role("link", name="Runs").click()
    runs = page.get_by_role("region", name="All runs")
    runs.get_by_text("no better than").wait_for()
    runs.get_by_text(re.compile("^majority")).first.wait_for()
    assert window.complaints == []


def test_data_that_are_gone_are_named_with_what_the_run_learned(over: tuple[Path, str], visit: Any) -> None:
    folder, link = over
    moved = (folder / "shop.csv").rename(folder / "elsewhere.csv")
    try:
        window = visit()
        profile = open_profile(window, link)
        profile.get_by_text(re.compile(r"cannot be opened here: .*shop\.csv: there is no such file")).wait_for(
            timeout=PATIENCE
        )
        profile.get_by_text("no, yes").wait_for()
        profile.get_by_text(re.compile("size")).first.wait_for()
    finally:
        moved.rename(folder / "shop.csv")
    profile.get_by_role("button", name="Compute again").click()
    profile.get_by_role("group", name="Columns").wait_for(timeout=PATIENCE)
    assert window.complaints == []


VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""


@pytest.mark.parametrize(("size", "theme"), [((1440, 900), "light"), ((1440, 900), "dark"), ((390, 844), "light")])
def test_profile_and_baselines_violate_no_rule_of_accessibility(
    over: tuple[Path, str], visit: Any, size: tuple[int, int], theme: str
) -> None:
    window = visit(size, theme)
    page = window.page
    page.goto(over[1])
    page.get_by_text("connected", exact=True).wait_for(state="attached")
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    page.get_by_role("note", name="About the results").wait_for()
    assert page.evaluate(JUDGE, TAGS) == []
    page.get_by_role("navigation").get_by_role("link", name="Data").click()
    page.get_by_role("button", name="Profile").click()
    page.locator(".findings").wait_for(timeout=PATIENCE)
    assert page.evaluate(JUDGE, TAGS) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.get_by_role("navigation").get_by_role("link", name="Runs").click()
    page.get_by_role("region", name="All runs").get_by_text("no better than").wait_for()
    assert page.evaluate(JUDGE, TAGS) == []
    assert window.complaints == []


def test_a_page_that_stays_open_shows_the_baselines_once_training_has_ended(
    browsers: Any, visit: Any, tmp_path: Path
) -> None:
    write_shop(tmp_path)
    with browsers.run(tmp_path, "shop.toml", *browsers.ENDLESS) as run:
        window = visit()
        page = window.page
        page.goto(run.link)
        accuracy = page.get_by_role("region", name="Accuracy")
        accuracy.get_by_role("img", name=re.compile("validation now")).wait_for()
        assert not page.locator(".baselines").count()
        run.sigma("set", "trainer.hooks.finish.when", "epoch reaches 1", "--run", str(run.results))
        page.get_by_role("region", name="Playback").get_by_text("Finished", exact=True).wait_for()
        accuracy.locator(".baselines").get_by_text("linear").wait_for(timeout=PATIENCE)
        page.get_by_role("note", name="About the results").get_by_text("no better than").wait_for()
        window.end()  # the run waits for its page
        run.process.wait(PATIENCE / 1000)


def test_a_run_that_has_ended_can_be_resumed_and_nothing_else(over: tuple[Path, str], visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(over[1])
    page.get_by_role("region", name="Playback").get_by_text("Finished", exact=True).wait_for()
    assert page.get_by_role("button", name="Resume", exact=True).is_enabled()
    for name in ("Rewind", "Save", "Stop"):
        assert page.get_by_role("button", name=name, exact=True).is_disabled()
    assert window.complaints == []
