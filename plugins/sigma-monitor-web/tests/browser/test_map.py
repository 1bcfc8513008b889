"""The history of rows and the map of the data, by pointer and by keys, and decisions of a network of two inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60_000  # milliseconds
VENDOR = Path(__file__).parent / "vendor"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
JUDGE = """async (tags) => (await axe.run(document, { runOnly: tags })).violations.map((one) =>
    `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)"""
TOML = """
format = 1
[run]
name = "halves"
[data]
batch_size = 32
[data.dataset]
type = "table"
path = "halves.csv"
target = "side"
[network]
architecture = "input() + dense(8, activation='tanh') + output() + softmax_cross_entropy()"
[trainer]
optimiser = { type = "adam", learning_rate = 0.001 }
[hooks.finish]
type = "stop"
when = "epoch reaches 6"
"""


def write_halves(folder: Path) -> None:
    """Write a table of two numbers and the side of a circle on which they lie."""
    places = [(x, y) for x in range(-15, 15) for y in range(-9, 9)]
    lines = [f"{x / 10:.1f},{y / 10:.1f},{'in' if x * x + y * y < 80 else 'out'}" for x, y in places]
    (folder / "halves.csv").write_text("\n".join(["width,height,side", *lines, ""]))
    (folder / "halves.toml").write_text(TOML)


@pytest.fixture(scope="module")
def halves(browsers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a run on two numbers that trains."""
    folder = tmp_path_factory.mktemp("run")
    write_halves(folder)
    with browsers.run(folder, "halves.toml", *browsers.ENDLESS) as run:
        yield run


def open_data(window: Any, link: str, part: str = "") -> Any:
    page = window.page
    page.goto(link)
    page.get_by_text("connected", exact=True).wait_for(state="attached")
    page.get_by_role("navigation").get_by_role("link", name="Data").click()
    if part:
        page.get_by_role("button", name=part, exact=True).click()
    return page


def test_rows_are_recorded_by_a_press_and_listed_by_their_history(training: Any, visit: Any) -> None:
    window = visit()
    page = open_data(window, training.link)
    rows = page.get_by_role("region", name=re.compile("^Rows"))
    rows.get_by_role("button", name=re.compile(r"row \d+")).first.wait_for(timeout=PATIENCE)  # the losses are there
    rows.get_by_label("Order").select_option("mislabelled")
    page.get_by_role("button", name="Attach it").click()
    first = rows.get_by_role("button", name=re.compile(r"row \d+, label \d, mean loss")).first
    first.wait_for(timeout=PATIENCE)
    assert rows.locator(".loss-spark").count() == 60
    first.click()
    past = page.get_by_role("region", name="Losses over the epochs")
    past.get_by_role("img", name=re.compile("Losses of one row up to")).wait_for()
    rows.get_by_label("Order").select_option("late")
    rows.get_by_role("button", name=re.compile(r"learned in epoch \d+")).first.wait_for(timeout=PATIENCE)
    assert window.complaints == []


def test_rows_on_the_map_are_chosen_by_drawing_around_them_and_excluded(training: Any, visit: Any) -> None:
    window = visit()
    page = open_data(window, training.link, "Map")
    map_ = page.get_by_role("application", name=re.compile("rows by the inputs"))
    map_.wait_for(timeout=PATIENCE)
    page.get_by_text(re.compile(r"PCA, \d+ % and \d+ % of the variance")).wait_for()
    box = map_.bounding_box()
    corners = [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7), (0.3, 0.3)]
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    for x, y in corners:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
    page.mouse.up()
    chosen = page.get_by_role("region", name="Chosen of training")
    chosen.get_by_role("button", name="Exclude", exact=True).wait_for()
    map_.press("Escape")
    page.get_by_text("Chosen rows are shown here").wait_for()
    for _ in range(3):
        map_.press("ArrowLeft")
    for key in ("Shift+ArrowRight", "Shift+ArrowDown"):
        for _ in range(8):
            map_.press(key)
    map_.press("Enter")
    chosen.get_by_role("button", name="Exclude", exact=True).click()
    chosen.get_by_text(re.compile("applied @")).wait_for(timeout=PATIENCE)
    page.get_by_role("button", name=re.compile(r"^excluded: [\d,]+ row")).wait_for(timeout=PATIENCE)
    assert window.complaints == []


def draw_around(page: Any, box: Any, corners: list[tuple[float, float]]) -> None:
    """Draw a closed line through places of a map, by a finger."""
    client = page.context.new_cdp_session(page)
    places = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]} for x, y in [*corners, corners[0]]]
    client.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": places[:1]})
    for start, end in pairwise(places):
        for share in (0.25, 0.5, 0.75, 1.0):
            place = {axis: start[axis] + share * (end[axis] - start[axis]) for axis in ("x", "y")}
            client.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [place]})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)], ids=["wide", "phone"])
def test_rows_are_added_and_taken_out_without_keys(size: tuple[int, int], halves: Any, visit: Any) -> None:
    window = visit(size)
    page = open_data(window, halves.link, "Map")
    map_ = page.get_by_role("application", name=re.compile("rows by the two inputs"))
    map_.wait_for(timeout=PATIENCE)

    def select(way: str, left: float, right: float) -> int:
        page.get_by_role("group", name="Drawing around points").get_by_role("button", name=way).click()
        downwards = [(left, 0.2), (left, 0.8), (right, 0.8), (right, 0.2)]
        draw_around(page, map_.bounding_box(), downwards)
        return int(re.search(r", (\d+) selected", map_.get_attribute("aria-label"))[1])

    first = select("Choose", 0.1, 0.3)
    both = select("Add", 0.2, 0.5)
    rest = select("Deselect", 0.1, 0.3)
    assert 0 < first < both
    assert rest == both - first
    assert select("Choose", 0.1, 0.3) == first
    assert window.complaints == []


def test_a_map_of_a_layer_moves_while_the_network_trains(training: Any, visit: Any) -> None:
    window = visit()
    page = open_data(window, training.link, "Map")
    page.get_by_label(re.compile("^Of")).select_option("2-dense")
    page.get_by_label("Colour").select_option("right")
    page.get_by_role("button", name=re.compile(r"^right: [\d,]+ rows")).wait_for(timeout=PATIENCE)
    before = page.get_by_text(re.compile("of the variance .* iteration")).inner_text()
    page.wait_for_function("text => !document.body.innerText.includes(text)", arg=before, timeout=PATIENCE)
    assert window.complaints == []


def test_decisions_of_two_inputs_lie_behind_the_points(halves: Any, visit: Any) -> None:
    window = visit((390, 844), "dark")
    page = open_data(window, halves.link, "Map")
    map_ = page.get_by_role("application", name=re.compile("rows by the two inputs"))
    map_.wait_for(timeout=PATIENCE)
    page.get_by_text(re.compile("width . height")).wait_for()
    page.wait_for_function(
        """() => {
            const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
            probe.drawImage(document.querySelector("canvas.map"), 0, 0);
            const { data } = probe.getImageData(2, 2, 1, 1);
            return data[3] > 0 && data[3] < 255;
        }""",
        timeout=PATIENCE,
    )
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert window.complaints == []


FRAMES = """async (count) => {
    const cloud = await import("./insight/cloud.js"), pen = document.createElement("canvas").getContext("2d");
    [pen.canvas.width, pen.canvas.height] = [1200, 900];
    const draw = () => Float32Array.from({ length: count }, () => Math.random());
    const from = { x: draw(), y: draw() }, to = { x: draw(), y: draw() }, now = { x: draw(), y: draw() };
    const places = (k) => [...Array(count / 10).keys()].map((i) => i * 10 + k);
    const groups = Array.from({ length: 10 }, (_, k) => ({ colour: `hsl(${k * 36} 60% 50%)`, places: places(k) }));
    const at = cloud.frame([0, 1, 0, 1], 1200, 900, false), times = [];
    for (let k = 0; k < 60; k++) {
        const began = performance.now();
        cloud.between(from, to, k / 60, now);
        pen.clearRect(0, 0, 1200, 900);
        cloud.points(pen, at, now, groups, count);
        times.push(performance.now() - began);
    }
    return Math.min(...times);
}"""
CHOICES = """async () => {
    const { frame, inside, nearest, within } = await import("./insight/cloud.js");
    const cloud = { x: [0, 1, 2, 3], y: [0, 1, 2, 3] }, at = frame([0, 3, 0, 3], 300, 300, true);
    const cut = [[0, 0], [10, 0], [10, 10], [5, 4], [0, 10]], square = [[50, 50], [250, 50], [250, 250], [50, 250]];
    return {
        inside: [[5, 2], [5, 8], [1, 8], [11, 5]].map(([x, y]) => inside(cut, x, y)),
        near: nearest(105, 195, at, cloud, 10),
        far: nearest(150, 20, at, cloud, 10),
        within: within(square, at, cloud),
    };
}"""


def test_points_within_a_drawn_line_are_chosen(training: Any, visit: Any) -> None:
    page = visit().page
    page.goto(training.link)
    found = page.evaluate(CHOICES)
    assert found == {"inside": [True, False, True, False], "near": 1, "far": -1, "within": [1, 2]}


def test_ten_thousand_points_move_within_a_frame(training: Any, visit: Any) -> None:
    page = visit().page
    page.goto(training.link)
    assert page.evaluate(FRAMES, 10_000) < 1000 / 60  # milliseconds of the shortest of 60: others wait for other work


@pytest.mark.parametrize(("size", "theme"), [((1440, 900), "light"), ((390, 844), "dark")])
def test_the_map_violates_no_rule_of_accessibility(halves: Any, visit: Any, size: tuple[int, int], theme: str) -> None:
    window = visit(size, theme)
    page = open_data(window, halves.link, "Map")
    page.get_by_role("application").wait_for(timeout=PATIENCE)
    page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    assert page.evaluate(JUDGE, TAGS) == []
    assert window.complaints == []
