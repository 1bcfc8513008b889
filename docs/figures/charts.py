"""Measure the charts of the dashboard: ``python -m figures.charts`` in the folder ``docs``, for five minutes.

``page`` shows 20 charts of a million points, and one chart of 500 series, that grow. ``libraries`` draws the same data
with the dashboard's own painter, with uPlot and with ECharts, which ``npm`` downloads. Parts are named as arguments.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field

from figures import watched
from figures.browser import Visit, browser
from sigma_kernel.contracts import AddressEntry, Stretch
from sigma_kernel.curves import Curve, Window, downsample
from sigma_monitor_web.monitor import WebMonitor
from sigma_testing import FakeView

FEEDS = {"20 charts of a million points": (20, 1, 1_000_000), "one chart of 500 series": (1, 500, 20_000)}
A_SECOND = 100  # points of each series
LIBRARIES = {"uplot@1.6.32": "package/dist/uPlot.iife.min.js", "echarts@6.1.0": "package/dist/echarts.min.js"}
DRAWN = {"20 charts of 4,000 points": (20, 1, 4000), "one chart of 500 series of 400 points": (1, 500, 400)}
GROWS = {"20 charts of 4,000 points": 40, "one chart of 500 series of 400 points": 4}
UPDATES, ROUNDS = 40, 3

# Each makes a function that draws the points of some charts, [[{x, y}, ...], ...], again once they have grown.
CONTESTANTS = {
    "own": """async (charts, width, height, host) => {
        const { curve, grid, prepare } = await import("./charts/paint.js");
        const { horizontal, linearTicks, roomy, vertical } = await import("./charts/scale.js");
        const colours = (await import("./charts/palette.js")).palette();
        const canvases = charts.map(() => host.appendChild(document.createElement("canvas")));
        for (const canvas of canvases) canvas.style.cssText = `width:${width}px;height:${height}px`;
        return () => charts.forEach((series, i) => {
            let low = Infinity, high = -Infinity;
            for (const { y } of series) for (const value of y) {
                if (value < low) low = value;
                if (value > high) high = value;
            }
            [low, high] = roomy(low, high, false);
            const frame = { left: 44, right: width - 16, width }, pen = prepare(canvases[i], width, height);
            const sy = vertical({ low, high, height }), { x: all } = series[0];
            const sx = horizontal({ low: all[0], high: all.at(-1), ...frame });
            grid(pen, linearTicks(low, high, 5).map((value) => [value, String(value)]), sy, frame, colours);
            const step = series.length > 6 ? Math.ceil((series.length * width) / 40000) : 1;
            const look = { colour: colours.s1, width: step > 1 ? 1.2 : 2, step };
            for (const { x, y } of series) curve(pen, { x, length: x.length }, y, [0, x.length], sx, sy, look);
        });
    }""",
    "uplot": """async (charts, width, height, host) => {
        const data = (series) => [series[0].x, ...series.map(({ y }) => y)];
        const plots = charts.map((series) => {
            const look = { stroke: "#2f54c8", width: series.length > 6 ? 1.2 : 2, points: { show: false } };
            const without = { legend: { show: false }, cursor: { show: false }, scales: { x: { time: false } } };
            const all = [{}, ...series.map(() => look)];
            return new uPlot({ width, height, ...without, series: all }, data(series), host);
        });
        return () => plots.forEach((plot, i) => plot.setData(data(charts[i])));
    }""",
    "echarts": """async (charts, width, height, host) => {
        const plots = charts.map(() => {
            const box = host.appendChild(document.createElement("div"));
            box.style.cssText = `width:${width}px;height:${height}px`;
            return echarts.init(box);
        });
        const look = { type: "line", showSymbol: false, sampling: "lttb", silent: true, lineStyle: { width: 2 } };
        const line = ({ x, y }, id) => ({ ...look, id, data: Array.from(x, (at, i) => [at, y[i]]) });
        const xAxis = { type: "value", min: "dataMin", max: "dataMax" }, yAxis = { type: "value", scale: true };
        const grid = { left: 44, right: 16, top: 16, bottom: 24 };
        const option = (series) => ({ animation: false, grid, xAxis, yAxis, series: series.map(line) });
        return () => plots.forEach((plot, i) => plot.setOption(option(charts[i]), { lazyUpdate: false, silent: true }));
    }""",
}
DRAW = """async ([count, series, points, grows, updates]) => {
    const host = document.body.appendChild(document.createElement("div")), charts = [];
    host.style.cssText = "position:absolute;left:0;top:0;z-index:99;width:720px";
    const wave = (n, at) => Math.sin(at / 500) + n / 10 + 0.2 * Math.sin(at * 12.9898 + n);
    const grow = (one, n, more) => {
        const x = new Float64Array(one.x.length + more), y = new Float64Array(x.length);
        x.set(one.x);
        y.set(one.y);
        for (let i = one.x.length; i < x.length; i++) [x[i], y[i]] = [i, wave(n, i)];
        Object.assign(one, { x, y });
    };
    const empty = () => ({ x: new Float64Array(0), y: new Float64Array(0) });
    for (let i = 0; i < count; i++) charts.push(Array.from({ length: series }, empty));
    const all = (more) => charts.forEach((chart) => chart.forEach((one, n) => grow(one, n, more)));
    all(points);
    const draw = await MAKE(charts, 720, count > 1 ? 120 : 600, host), frame = () => new Promise(requestAnimationFrame);
    for (let n = 0; n < updates; n++) {
        all(grows);
        draw();
        await frame();
    }
    await frame();
    host.remove();
}"""


# -- the page ----------------------------------------------------------------------------------------------------------
class Feed(FakeView):
    """Waves that grow, of as many points as are asked for."""

    length: int = field(default=0)
    begun: float = field(factory=time.monotonic)

    def iteration(self) -> int:
        """Return how many points there are by now."""
        return self.length + int((time.monotonic() - self.begun) * A_SECOND)

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return all points in few, or those since a cursor."""
        end, level = self.iteration(), int(address.rpartition("s")[2])
        at = np.arange(after + 1, end + 1)
        values = np.sin(at / 500) + 0.3 * np.sin(at * 12.9898) + 3 + level
        curve = Curve(at, at // 600, at * 0.01, values, values, values)
        return end, [Stretch(0, curve if after else downsample(curve, window.most))] if len(at) else []

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return the numbers, and where the run stands."""
        self.values |= {"trainer.iteration": self.iteration(), "trainer.epoch": self.iteration() // 600}
        return [evolve(entry, type="number") for entry in super().entries(pattern)]

    def log(self, text: str) -> None:
        """Tell the link."""
        print(text, flush=True)


def feed(charts: int, series: int, length: int) -> None:
    """Serve the feed until the standard input ends."""
    names = [[f"trainer.synthetic.s{chart * series + n}" for n in range(series)] for chart in range(charts)]
    shown = [{"patterns": mine, "tall": 194 if series == 1 else 600} for mine in names]
    view = Feed(values=dict.fromkeys([name for mine in names for name in mine], 3.0))
    view.length, view.begun = length, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        layout = Path(folder) / "layout.json"
        layout.write_text(json.dumps({"format": 1, "tabs": [{"view": "train", "charts": shown, "columns": 1}]}))
        threading.Thread(target=lambda: (sys.stdin.read(), view.over.set()), daemon=True).start()
        WebMonitor(open=False, layout=str(layout)).watch(view)


@contextmanager
def fed(chromium: Any, *sizes: int) -> Iterator[Visit]:
    """Show a feed in a window, served by another process."""
    command = [sys.executable, "-m", "figures.charts", "feed", *map(str, sizes)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        window = Visit.begin(chromium)
        window.page.goto(server.stdout.readline().split()[-1])
        shown = window.page.get_by_role("img", name=re.compile(r": .* now [0-9]"))
        shown.nth(sizes[0] - 1).wait_for(state="attached", timeout=60_000)
        try:
            yield window
        finally:
            window.end()
            server.communicate("")


def page(chromium: Any) -> str:
    """Return what the page does with each feed, at rest, and while it is pointed at and scrolled."""
    told = []
    for name, sizes in FEEDS.items():
        with fed(chromium, *sizes) as window:
            window.page.wait_for_timeout(watched.SETTLE * 1000)
            window.page.evaluate(watched.OBSERVE)
            told.append(watched.frames(chromium, window, f"{name}, at rest"))
            window.page.evaluate(watched.MOVE)
            told.append(watched.frames(chromium, window, f"{name}, pointed at and scrolled"))
    return "\n".join(told)


# -- libraries ---------------------------------------------------------------------------------------------------------
def download(folder: Path) -> dict[str, str]:
    """Return the scripts of the libraries, as ``npm`` has them."""
    found = {}
    for package, path in LIBRARIES.items():
        packed = subprocess.run(
            ["npm", "pack", "--silent", package], cwd=folder, check=True, text=True, capture_output=True
        )
        with tarfile.open(folder / packed.stdout.strip()) as archive:
            script = archive.extractfile(path)
            assert script is not None
            found[package.partition("@")[0]] = script.read().decode()
    return found


def processor(devtools: Any) -> float:
    """Return the processor seconds of all of the browser's processes so far."""
    return float(sum(one["cpuTime"] for one in devtools.send("SystemInfo.getProcessInfo")["processInfo"]))


def libraries(chromium: Any) -> str:
    """Return what an update costs each contestant, in processor time of all of the browser's processes."""
    devtools = chromium.new_browser_cdp_session()
    with tempfile.TemporaryDirectory() as folder:
        scripts = download(Path(folder))
    told = [f"{name}: {len(text) / 1000:.0f} kB" for name, text in scripts.items()]
    with ExitStack() as windows:
        pages = {name: windows.enter_context(fed(chromium, 1, 1, 1000)).page for name in CONTESTANTS}
        for name, text in scripts.items():
            found = "if (typeof uPlot !== 'undefined') window.uPlot = uPlot;"
            pages[name].evaluate(f"() => {{ (function () {{ {text}\n {found} }}).call(window); }}")
        for what, sizes in DRAWN.items():
            spent: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
            for _ in range(ROUNDS):
                for name, make in CONTESTANTS.items():
                    draw = DRAW.replace("MAKE", f"({make})")
                    spent[name].append(_update(pages[name], devtools, draw, [*sizes, GROWS[what]]))
            for name, rounds in spent.items():
                told.append(f"{what}, {name}: {np.median(rounds) * 1000:.0f} ms of the processor")
    return "\n".join(told)


def _update(page: Any, devtools: Any, draw: str, arguments: list[Any]) -> float:
    """Return the processor seconds of an update."""
    spent = []
    for updates in (5, 0, UPDATES):  # the first warms up, the second costs what is made once
        before = processor(devtools)
        page.evaluate(draw, [*arguments, updates])
        spent.append(processor(devtools) - before)
    return (spent[2] - spent[1]) / UPDATES


def main(*wanted: str) -> None:
    """Measure what is named, by default both."""
    with browser() as chromium:
        for part in (page, libraries):
            if part.__name__ in wanted or not wanted:
                print(part(chromium), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["feed"]:
        import_module("figures.charts").feed(*map(int, sys.argv[2:]))
    else:
        main(*sys.argv[1:])
