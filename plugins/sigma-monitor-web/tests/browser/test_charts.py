"""Charts: many series at once, zoom both ways, readings, labels, columns, sections, files, print and forced colours."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel.contracts import AddressEntry, Stretch
from sigma_kernel.curves import Curve, Window, downsample
from sigma_testing import FakeView

from .serving import serve_view

POINTS, RATE = 20_000, 400  # at the beginning, and more a second
MANY = 500
DEEP = "trainer.network.layers.12-repeated.attention.blocks.{}.weights.norm"
SVG = "{http://www.w3.org/2000/svg}"


class Waves(FakeView):
    """A run of waves: series n is a wave around n + 1, one value per iteration."""

    begun = 0.0

    def iteration(self) -> int:
        return POINTS + int((time.monotonic() - self.begun) * RATE if self.state == "running" else 0)

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        end, level = self.iteration(), 1 + list(self.values).index(address)
        at = np.arange(after + 1, end + 1)
        if window.span is not None:
            at = at[(at >= window.span[0]) & (at <= window.span[1])]
        values = level + 0.3 * np.sin(at / 500)
        curve = Curve(at, at // 600, at * 0.01, values, values, values)
        return end, [Stretch(0, curve if after else downsample(curve, window.most))] if len(at) else []

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        self.values |= {"trainer.iteration": self.iteration(), "trainer.epoch": self.iteration() // 600}
        return [evolve(entry, type="number") for entry in super().entries(pattern)]


@contextmanager
def served(folder: Path, names: list[str], charts: list[Any], state: str = "running", **train: Any) -> Iterator[Any]:
    """Serve waves with a layout; return the link."""
    view = Waves(values=dict.fromkeys(names, 1.0), state=state)
    view.begun = time.monotonic()
    layout = folder / "layout.json"
    layout.write_text(json.dumps({"format": 1, "tabs": [{"view": "train", "smoothing": 0, "charts": charts, **train}]}))
    with serve_view(view, layout=str(layout)) as link:
        yield link


@pytest.fixture
def charts(tmp_path: Path, visit: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that shows waves, and the window with them."""
    windows, ends = [], []

    def show(names: list[str], charts: list[Any], *window: Any, **more: Any) -> Any:
        serving = served(tmp_path, names, charts, **more)
        link = serving.__enter__()
        ends.append(serving)
        windows.append(visit(*window))
        windows[-1].page.goto(link)
        shown = windows[-1].page.get_by_role("img", name=re.compile(r"now [0-9].* [0-9,]*[0-9]{2} points"))
        shown.nth(len(charts) - 1).wait_for(state="attached")
        return windows[-1]

    yield show
    for serving in ends:
        serving.__exit__(None, None, None)
    assert [window.complaints for window in windows] == [[]] * len(windows)


def names(count: int) -> list[str]:
    return [f"trainer.synthetic.s{number}" for number in range(count)]


def chart(*patterns: str, **more: Any) -> dict[str, Any]:
    return {"patterns": list(patterns), "tall": 194, **more}


def plot(window: Any, at: int = 0) -> dict[str, float]:
    """Return where the plot of a chart is, inside its ticks and labels."""
    found: dict[str, float] = window.page.evaluate(
        """at => {
            const plot = document.querySelectorAll("[data-plot]")[at], box = plot.getBoundingClientRect();
            return { x: box.x, y: box.y, width: box.width, height: plot.querySelector("canvas").clientHeight };
        }""",
        at,
    )
    return found


def drag(window: Any, start: tuple[float, float], end: tuple[float, float], at: int = 0) -> None:
    """Drag between two places of a plot, in shares of its width and height."""
    box, mouse = plot(window, at), window.page.mouse
    for n, (x, y) in enumerate([start, start, end, end]):
        mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if n == 0:
            mouse.down()
    mouse.up()


def scale(window: Any, name: str) -> list[float]:
    """Return the scale of a chart, as its menu has it."""
    window.page.get_by_role("button", name=f"Options of {name}").click()
    group = window.page.get_by_role("group", name="Scale")
    found = [float(group.get_by_label(end, exact=True).input_value()) for end in ("from", "to")]
    window.page.keyboard.press("Escape")
    return found


def axis(window: Any) -> list[float]:
    """Return the part of the run that is shown, as the first and the last tick have it."""
    return window.page.evaluate("async () => (await import('./store.js')).store.get().range")  # type: ignore[no-any-return]


def wait(holds: Callable[[], Any], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


# -- many series -------------------------------------------------------------------------------------------------------
def test_a_chart_of_five_hundred_series_neither_freezes_the_page_nor_fills_it(charts: Any) -> None:
    window = charts(names(MANY), [chart("trainer.synthetic.*")])
    page = window.page
    page.evaluate("""() => {
        window.tasks_ = [];
        const long = new PerformanceObserver((list) => tasks_.push(...list.getEntries().map((one) => one.duration)));
        long.observe({ type: "longtask" });
        window.frames_ = 0;
        const frame = () => { frames_ += 1; requestAnimationFrame(frame); };
        requestAnimationFrame(frame);
    }""")
    page.wait_for_timeout(4000)
    frames, tasks = page.evaluate("() => [frames_, tasks_]")
    assert frames > 60, f"{frames} frames in 4 s"
    assert max(tasks, default=0) < 500, tasks
    assert page.evaluate("document.querySelectorAll('#score *').length") < 400
    assert page.get_by_text("and 494 in grey").is_visible()
    page.get_by_role("button", name=re.compile("Options of")).click()
    listed = page.get_by_role("group", name="Series").get_by_role("checkbox")
    assert listed.count() < 40
    page.get_by_label("Find a series").fill("s432")
    wait(lambda: listed.count() == 1)
    listed.uncheck()
    page.get_by_label("Find a series").fill("")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="All values").click()
    values = page.get_by_role("group", name="All values")
    assert values.get_by_role("table").get_attribute("aria-rowcount") == str(
        MANY
    )  # with the head, without the hidden one
    assert values.get_by_role("row").count() < 40
    values.get_by_role("button", name="now").click()
    first = values.get_by_role("row").nth(1)
    assert first.get_by_role("rowheader").inner_text().strip() == "trainer.synthetic.s499"
    values.get_by_role("button", name="now").click()
    assert first.get_by_role("rowheader").inner_text().strip() == "trainer.synthetic.s0"
    values.evaluate("one => { one.scrollTop = one.scrollHeight; }")
    values.get_by_role("rowheader", name="trainer.synthetic.s499").wait_for()


# -- zooming -----------------------------------------------------------------------------------------------------------
def test_a_drag_zooms_along_the_axis_or_across_it_or_both_and_a_double_click_shows_all(charts: Any) -> None:
    window = charts(names(1), [chart(*names(1), title="Wave")], state="finished")
    whole = scale(window, "Wave")
    assert whole == pytest.approx([0.658, 1.342], abs=0.01)
    drag(window, (0.3, 0.5), (0.6, 0.52))
    low, high = axis(window)
    assert 0.2 * POINTS < low < high < 0.8 * POINTS
    assert scale(window, "Wave") == pytest.approx(whole, abs=0.05)
    drag(window, (0.5, 0.3), (0.505, 0.6))
    assert axis(window) == [low, high]
    across = scale(window, "Wave")
    assert whole[0] < across[0] < across[1] < whole[1]
    window.page.get_by_text("scale is set").wait_for()
    drag(window, (0.3, 0.3), (0.6, 0.7))
    assert axis(window)[0] > low
    assert scale(window, "Wave")[0] > across[0]
    box = plot(window)
    window.page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + 60)
    assert axis(window) is None
    assert scale(window, "Wave") == whole
    assert window.page.get_by_role("button", name="Unpin all").count() == 0  # the two presses pinned, and unpinned


def test_the_wheel_and_two_fingers_zoom_both_ways_and_a_menu_takes_numbers(charts: Any) -> None:
    window = charts(names(1), [chart(*names(1), title="Wave")], state="finished")
    page, box = window.page, plot(window)
    whole = scale(window, "Wave")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 90)
    page.mouse.wheel(0, -100)
    assert axis(window) is None, "without Ctrl, the wheel scrolls"
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    wait(lambda: axis(window))
    low, high = axis(window)
    assert high - low == pytest.approx(POINTS / 1.3, rel=0.01)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Shift")
    page.keyboard.up("Control")
    wait(lambda: scale(window, "Wave")[1] - scale(window, "Wave")[0] < 0.9 * (whole[1] - whole[0]))
    page.get_by_role("group", name=re.compile("^Charts:")).focus()
    page.keyboard.press("0")
    assert axis(window) is None
    assert scale(window, "Wave") == whole
    devtools = page.context.new_cdp_session(page)
    middle, y = box["x"] + box["width"] / 2, box["y"] + 90

    def touch(kind: str, *apart: float) -> None:
        points = [{"x": middle - one, "y": y, "id": 0} for one in apart] + [
            {"x": middle + one, "y": y + 4, "id": 1} for one in apart
        ]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 60)
    for apart in (80, 100, 120):
        touch("touchMove", apart)
    touch("touchEnd")
    wait(lambda: axis(window))
    low, high = axis(window)
    assert high - low == pytest.approx(POINTS / 2, rel=0.05)
    page.get_by_role("button", name="Options of Wave").click()
    group = page.get_by_role("group", name="Scale")
    group.get_by_label("to", exact=True).fill("0,1")
    group.get_by_label("to", exact=True).press("Enter")
    group.get_by_text("The first must be a number below the second.").wait_for()
    group.get_by_label("to", exact=True).fill("3")
    group.get_by_label("to", exact=True).press("Enter")
    group.get_by_role("button", name="Automatic").wait_for()
    page.keyboard.press("Escape")
    assert scale(window, "Wave")[1] == 3


def test_a_logarithmic_axis_shows_each_decade_alike_and_the_beginning_in_more_points(charts: Any) -> None:
    window = charts(names(1), [chart(*names(1), title="Wave")], state="finished", log=True)
    page = window.page
    places = page.evaluate("""async () => {
        const { horizontal } = await import("./charts/scale.js");
        const sx = horizontal({ low: 0, high: 10000, left: 0, right: 400, log: true });
        return [[0, 1, 10, 100, 1000, 10000].map(sx), [0, 100, 300, 400].map((x) => sx.invert(x))];
    }""")
    assert places[0] == pytest.approx([0, 0, 100, 200, 300, 400])
    assert places[1] == pytest.approx([1, 10, 1000, 10000])
    page.get_by_role("button", name="Display").click()
    box = page.get_by_role("checkbox", name="Logarithmic axis")
    assert box.is_checked()
    page.keyboard.press("Escape")
    early = "async () => (await import('./series.js')).curves.get('trainer.synthetic.s0').detail.get(0)?.length ?? 0"
    wait(lambda: page.evaluate(early) >= 256)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Display").click()
    box.uncheck()
    wait(lambda: page.evaluate(early) == 0)


ZOOMS = """async () => {
    const { zoomed, moved, scaled, directions } = await import("./charts/zoom.js");
    const whole = { low: 0, high: 1000, end: 1000, log: false, least: 1 }, part = { ...whole, low: 400, high: 600 };
    const log = { low: 1, high: 10000, end: 10000, log: true, least: 1 };
    const least = { ...whole, low: 0, high: 0.1 }, sizes = [[3, 3], [40, 5], [5, 40], [40, 40], [200, 30], [30, 200]];
    return [zoomed(whole, 500, 0.5), zoomed(part, 500, 10), zoomed(least, 0, 0.5), zoomed(log, 100, 0.5),
        moved(part, 0.5), moved(part, 10), moved(part, -10), moved(whole, 0.5),
        scaled({ low: 1, high: 100, log: true }, 10, 0.5), scaled({ low: -1, high: 1, log: false }, 0, 2),
        sizes.map(([wide, tall]) => Object.values(directions(wide, tall)))];
}"""


def test_what_a_zoom_comes_to(charts: Any) -> None:
    found = charts(names(1), [chart(*names(1))], state="finished").page.evaluate(ZOOMS)
    assert found[:3] == [[250, 750], None, [0, 0.1]]
    assert found[3] == pytest.approx([10, 1000])
    assert found[4:8] == [[500, 700], [800, 1000], [0, 200], None]
    assert found[8] == pytest.approx([10**0.5, 10**1.5])
    assert found[9] == [-2, 2]
    assert found[10] == [[False, False], [True, False], [False, True], [True, True], [True, False], [False, True]]


# -- reading -----------------------------------------------------------------------------------------------------------
def test_a_chart_tells_its_values_at_the_pointer_highest_first_and_pins_keep_them(charts: Any) -> None:
    window = charts(names(3), [chart("trainer.synthetic.*", title="Waves")], state="finished")
    page, box = window.page, plot(window)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    tip = page.locator(".tip")
    tip.wait_for()
    rows = [row.split("\t") for row in tip.locator("tbody tr").all_inner_texts()]
    assert [row[0] for row in rows] == ["s2", "s1", "s0"]
    at = int(re.search(r"iteration ([\d,]+)", tip.inner_text())[1].replace(",", ""))  # type: ignore[index]
    for level, (_, value, *_) in zip((3, 2, 1), rows, strict=True):
        assert float(value) == pytest.approx(level + 0.3 * np.sin(at / 500), abs=0.02)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 100)
    page.mouse.click(box["x"] + box["width"] / 3, box["y"] + 100)
    assert page.locator(".pins li").count() == 2
    page.get_by_role("button", name="All values").click()
    table = page.get_by_role("group", name="All values")
    assert [head.split()[0] for head in table.get_by_role("columnheader").all_inner_texts()] == [
        "Series",
        "now",
        "A",
        "B",
    ]
    table.get_by_role("button", name="A", exact=True).click()
    assert table.get_by_role("columnheader", name="A", exact=True).get_attribute("aria-sort") == "descending"
    assert [head.strip() for head in table.get_by_role("rowheader").all_inner_texts()] == [
        f"trainer.synthetic.s{n}" for n in (2, 1, 0)
    ]
    page.get_by_role("button", name="Unpin A", exact=True).click()
    assert page.locator(".pins li").count() == 1
    page.get_by_role("group", name=re.compile("^Charts:")).focus()
    for key in ("Home", "PageDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert page.locator(".pins li").count() == 2, "by keys as well"


def test_a_finger_reads_the_values_too(charts: Any) -> None:
    window = charts(names(3), [chart("trainer.synthetic.*", title="Waves")], (390, 844), state="finished")
    box = plot(window)
    window.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 60)
    window.page.locator(".tip").get_by_text("iteration").wait_for()
    window.page.get_by_role("button", name="Pin", exact=True).tap()
    assert window.page.locator(".pins li").count() == 1


# -- what is written ---------------------------------------------------------------------------------------------------
CUT = """() => {
    const all = [...document.querySelectorAll(".label, .lane .head *, .reading p, .tip *")];
    const seen = all.filter((one) => one.checkVisibility());
    const card = document.querySelector("#score").getBoundingClientRect();
    const cut = (one) => getComputedStyle(one).display !== "inline" && one.scrollWidth > one.clientWidth + 1;
    const over = (one) => !one.closest(".sr") && (cut(one) || one.getBoundingClientRect().right > card.right + 0.5);
    return seen.filter(over).map((one) => one.outerHTML.slice(0, 120));
}"""
OUTSIDE = """async () => {
    const { measure } = await import("./charts/paint.js"), found = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const wide = measure(text, ...[/(\\d+)px/, /^(\\d+) /].map((one) => Number(this.font.match(one)?.[1] ?? 400)));
        const left = { left: x, center: x - wide / 2, right: x - wide }[this.textAlign];
        if (left < -0.5 || left + wide > this.canvas.clientWidth + 0.5) found.push(`${text} ${left} ${wide}`);
        write.call(this, text, x, y);
    };
    const { store } = await import("./store.js");
    for (const columns of [1, 2, 3]) {
        store.set({ columns });
        await new Promise((done) => setTimeout(done, 400));
    }
    CanvasRenderingContext2D.prototype.fillText = write;
    return found;
}"""


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_no_label_is_cut_however_long_it_is(charts: Any, size: tuple[int, int]) -> None:
    long = [DEEP.format(name) for name in ("encoder", "decoder", "an-exceedingly-long-name-of-a-block_with_parts")]
    window = charts(long, [chart(*long), chart(long[0], bounds=[-123456.789, 123456.789])], size, state="finished")
    assert window.page.evaluate(OUTSIDE) == []
    for columns in (1, 2, 3):
        window.page.evaluate("async columns => (await import('./store.js')).store.set({ columns })", columns)
        window.page.wait_for_timeout(300)
        assert window.page.evaluate(CUT) == []
        assert window.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    labels = window.page.locator(".label").all_inner_texts()
    assert "".join(labels[0].split()).startswith("encoder") or any("encoder" in text for text in labels)


# -- columns, sections, layout -----------------------------------------------------------------------------------------
def test_charts_stand_in_columns_and_sections_and_the_layout_keeps_them(charts: Any, tmp_path: Path) -> None:
    window = charts(names(4), [chart(name) for name in names(4)], state="finished")
    page = window.page
    page.get_by_role("button", name="Display").click()
    page.get_by_role("group", name="Columns").get_by_role("button", name="3").click()
    page.get_by_role("checkbox", name="Tight scales").check()
    page.keyboard.press("Escape")
    tops = [plot(window, at)["y"] for at in range(4)]
    assert tops[0] == tops[1] == tops[2] < tops[3]
    page.get_by_role("button", name="Options of S1").click()
    page.get_by_label("Section").fill("Layers")
    page.get_by_label("Section").press("Enter")
    page.keyboard.press("Escape")
    fold = page.get_by_role("button", name="Layers", exact=True)
    fold.click()
    assert page.get_by_role("region", name="S1").count() == 0
    fold.click()
    page.get_by_role("region", name="S1").wait_for()
    drag(window, (0.4, 0.2), (0.7, 0.8), 3)
    page.get_by_role("button", name="Layout").click()
    page.get_by_role("button", name="Save layout").click()
    page.get_by_text("Saved in").wait_for()
    (train,) = [tab for tab in json.loads((tmp_path / "layout.json").read_text())["tabs"] if tab["view"] == "train"]
    assert (train["columns"], train["tight"]) == (3, True)
    assert [one.get("section") for one in train["charts"]] == [None, "Layers", None, None]
    assert [("bounds" in one) for one in train["charts"]].count(True) == 1


# -- files -------------------------------------------------------------------------------------------------------------
def test_one_chart_and_all_of_them_are_saved_as_svg_png_and_csv(charts: Any) -> None:
    window = charts(names(2), [chart(name, title=name[-2:].upper()) for name in names(2)], state="finished")
    page = window.page

    def saved(kind: str, menu: str) -> tuple[str, bytes]:
        page.get_by_role("button", name=menu, exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name=kind, exact=True).click()
        page.keyboard.press("Escape")
        return download.value.suggested_filename, Path(download.value.path()).read_bytes()

    for menu, known in (("Export", {*names(2)}), ("Options of S1", {names(2)[1]})):
        name, text = saved("CSV", menu)
        rows = [*csv.DictReader(text.decode().splitlines())]
        assert name.endswith(".csv")
        assert {row["address"] for row in rows} == known
        assert float(rows[-1]["value"]) == pytest.approx(len(known & {names(2)[1]}) + 1 + 0.3 * np.sin(POINTS / 500))
        name, picture = saved("SVG", menu)
        root = ElementTree.fromstring(picture)
        written = {one.text for one in root.iter(f"{SVG}text")}
        assert {"S1", "20,000"} <= written
        assert ("S0" in written) is (menu == "Export")
        assert len([*root.iter(f"{SVG}path")]) > 5
        assert saved("PNG", menu)[1].startswith(b"\x89PNG")
    page.set_content(picture.decode())  # as a browser shows it
    assert page.locator("svg text").first.is_visible()


# -- without colours ---------------------------------------------------------------------------------------------------
DASHES = "async () => ['s1', 's2', 's3'].map((await import('./charts/palette.js')).palette().dash)"


def test_series_differ_by_dashes_where_colours_are_forced(charts: Any) -> None:
    window = charts(names(3), [chart("trainer.synthetic.*", title="Waves")], state="finished")
    page = window.page
    assert page.evaluate(DASHES) == [[], [], []]
    page.emulate_media(forced_colors="active")
    page.reload()
    page.get_by_role("img", name=re.compile("now [0-9]")).last.wait_for(state="attached")
    dashes = page.evaluate(DASHES)
    assert len({*map(tuple, dashes)}) == 3
    samples = page.locator(".label .dashes")
    assert samples.count() == 3
    assert samples.first.is_visible()


def test_paper_has_the_charts_alone_in_light_colours_with_dashes(charts: Any) -> None:
    window = charts(names(3), [chart("trainer.synthetic.*", title="Waves")], (1440, 900), "dark", state="finished")
    page = window.page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert len({*map(tuple, page.evaluate(DASHES))}) == 3
    assert page.evaluate("async () => (await import('./charts/palette.js')).palette().surface") == "rgb(255, 255, 255)"
    assert not page.get_by_role("button", name="Pause").is_visible()
    assert page.locator(".label .dashes").first.is_visible()
    assert page.get_by_role("heading", name="Waves").is_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(DASHES) == [[], [], []]
