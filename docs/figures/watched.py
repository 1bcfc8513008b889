"""Measure what watching costs: ``python -m figures.watched`` in the folder ``docs``, for five minutes at most.

A hook publishes values; a run trains with and without somebody watching it, in alternating pairs; the page is fed eight
charts of 10,000 points with 1,000 more a second; and commands are given to a run of the digits.  Parts are named as
arguments: ``publishing``, ``steps``, ``page``, ``commands``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from attrs import define, evolve, field
from websockets.sync.client import connect

from figures.browser import ENDLESS, Visit, browser, run
from sigma_kernel import Environment, Hook
from sigma_kernel.contracts import AddressEntry, Stretch
from sigma_kernel.curves import Curve, Window, downsample
from sigma_monitor_web.monitor import WebMonitor
from sigma_testing import FakeView

CHARTS, POINTS, A_SECOND = 8, 10_000, 1_000
SETTLE, WATCHED = 3.0, 10.0  # seconds
COMMANDS = 200
BACKENDS = ("numba", "numpy")
PAIRS, ROUNDS = 200, 20
SETTLED, BLOCK = 0.05, 0.15  # seconds before each half of a pair, and of it
LEAST = 5  # steps of a half, however busy the machine is
VALUES = 20  # that a hook publishes in each iteration
MONITORS = ("sigma-web", "sigma-control")  # the names of their threads

OBSERVE = """() => {
    window.frames_ = [];
    let last = performance.now();
    const frame = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
}"""
MOVE = """() => { let n = 0; window.mover = setInterval(() => {
    n += 1;
    const plots = document.querySelectorAll("[data-plot]"), plot = plots[n % Math.min(4, plots.length)];
    const box = plot.getBoundingClientRect();
    const [clientX, clientY] = [box.left + 60 + (n * 7) % 700, box.top + 30];
    plot.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY, pointerType: "mouse" }));
    scrollTo(0, Math.abs((n * 5) % 1800 - 900));
}, 16); }"""
FRAMES = "() => frames_.splice(0)"
TRACED = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
LONG = 50.0  # milliseconds
COMMAND = """async (count) => {
    const socket = new WebSocket(location.href.replace("http", "ws").split("#")[0] + "ws"), took = [];
    await new Promise((open) => { socket.onopen = open; });
    for (let id = 1; id <= count; id += 1) {
        const begun = performance.now(), at = {};
        const answered = new Promise((done) => { socket.onmessage = ({ data }) => {
            const { event, result } = JSON.parse(data);
            at.queued ??= performance.now() - begun;
            if (event) return;
            at.applied = performance.now() - begun;
            done(result);
        }; });
        socket.send(JSON.stringify({ id, do: "set", pattern: "learning_rate", value: 0.001 + id / 1e6 }));
        if ((await answered)?.state !== "applied") throw new Error("the command was not applied");
        took.push([at.queued, at.applied]);
    }
    socket.close();
    return took;
}"""


# -- the page ----------------------------------------------------------------------------------------------------------
@define(eq=False)
class Feed(FakeView):
    """A run that never was: waves with noise, which grow with time."""

    begun: float = field(factory=time.monotonic)
    noise: np.ndarray = field(factory=lambda: np.random.default_rng(0).normal(3.0, 0.2, 1_000_000))

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return all points in few, or those since a cursor."""
        end = self.iteration()
        at = np.arange(after + 1, end + 1)
        values = np.sin(at / 500) + self.noise[after:end]
        curve = Curve(at, at // 600, at * 0.01, values, values, values)
        return end, [Stretch(0, curve if after else downsample(curve, window.most))] if len(at) else []

    def iteration(self) -> int:
        """Return how many points there are by now."""
        return POINTS + int((time.monotonic() - self.begun) * A_SECOND / CHARTS)

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return the numbers, and where the run stands."""
        self.values |= {"trainer.iteration": self.iteration(), "trainer.epoch": self.iteration() // 600}
        return [evolve(entry, type="number") for entry in super().entries(pattern)]

    def log(self, text: str) -> None:
        """Tell the link."""
        print(text, flush=True)


def feed() -> None:
    """Serve the feed until the standard input ends."""
    names = [f"trainer.synthetic.s{number}" for number in range(CHARTS)]
    charts = [{"patterns": [name], "tall": 194} for name in names]
    view = Feed(values=dict.fromkeys(names, 3.0))
    with tempfile.TemporaryDirectory() as folder:
        layout = Path(folder) / "layout.json"
        layout.write_text(json.dumps({"format": 1, "tabs": [{"view": "train", "charts": charts}]}))
        threading.Thread(target=lambda: (sys.stdin.read(), view.over.set()), daemon=True).start()
        WebMonitor(open=False, layout=str(layout)).watch(view)


def page(chromium: Any) -> str:
    """Return what the page does with the feed, at rest and while it is pointed at and scrolled."""
    command = [sys.executable, "-m", "figures.watched", "feed"]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        window = Visit.begin(chromium)
        window.page.goto(server.stdout.readline().split()[-1])
        full = window.page.get_by_role("img", name=re.compile(r": .* [1-9],[0-9]{3} points"))
        full.nth(CHARTS - 1).wait_for(state="attached", timeout=60_000)
        window.page.wait_for_timeout(SETTLE * 1000)
        window.page.evaluate(OBSERVE)
        rest = frames(chromium, window, "page, at rest")
        window.page.evaluate(MOVE)
        moved = frames(chromium, window, "page, pointed at and scrolled")
        window.end()
        server.communicate("")
    return "\n".join([rest, moved])


def frames(chromium: Any, window: Visit, how: str) -> str:
    """Return the frames of some seconds, and the tasks of the page's main thread, which the browser traces."""
    chromium.start_tracing(page=window.page, categories=TRACED)
    window.page.evaluate(FRAMES)
    window.page.wait_for_timeout(WATCHED * 1000)
    shown = np.array(window.page.evaluate(FRAMES))
    tasks = _tasks(json.loads(chromium.stop_tracing())["traceEvents"])
    told = (
        f"{int((tasks[:, n] > LONG).sum())} tasks above {LONG:.0f} ms of {what} (longest {tasks[:, n].max():.0f} ms)"
        for n, what in enumerate(("processor time", "wall time"))
    )
    rate = f"{1000 / shown.mean():.0f} frames a second (95 % within {np.quantile(shown, 0.95):.0f} ms)"
    share = f"{tasks[:, 0].sum() / WATCHED:.0f} ms of processor time a second"
    return f"{how}, {WATCHED:.0f} s: {rate}, {share}, {', '.join(told)}"


def _tasks(events: Sequence[dict[str, Any]]) -> np.ndarray:
    """Return the milliseconds of processor and of wall time of each task of main threads of pages."""
    main = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and "RendererMain" in e["args"]["name"]}
    found = [e for e in events if e["name"].endswith("RunTask") and e["ph"] == "X" and (e["pid"], e["tid"]) in main]
    return np.array([(e.get("tdur", e["dur"]), e["dur"]) for e in found], float).reshape(-1, 2) / 1000


# -- commands and steps ------------------------------------------------------------------------------------------------
def commands(chromium: Any) -> str:
    """Return how long the browser waits until a command is applied, while the digits are trained."""
    with tempfile.TemporaryDirectory() as folder, run(Path(folder), "digits", *ENDLESS) as begun:
        window = Visit.begin(chromium)
        window.page.goto(begun.link)
        window.page.get_by_text("connected", exact=True).wait_for()
        took = np.array(window.page.evaluate(COMMAND, COMMANDS))
        window.end()
    told = zip(("acknowledged", "applied"), took.T, strict=True)
    return "\n".join(
        f"a command is {what}: median {np.median(one):.0f} ms, 95 % within {np.quantile(one, 0.95):.0f} ms ({len(one)})"
        for what, one in told
    )


@define(eq=False)
class Noted:
    """What the training thread notes: a run has a copy of each hook, so this is one for all."""

    values: int = 0  # to publish in each iteration
    count: int = 0  # of iterations
    spent: float = 0.0  # processor seconds that publishing took
    worked: float = 0.0  # processor seconds of the training thread


NOTED = Noted()
NAMES = [f"published.v{number}" for number in range(VALUES)]


@define(eq=False)
class Stopwatch(Hook):
    """Count iterations, and publish as many values as it is told."""

    writes: Sequence[str] = ("published.**",)

    def fire(self, context: Any) -> None:
        """Publish."""
        begun = time.thread_time()
        for name in NAMES[: NOTED.values]:
            context.publish(name, begun)
        ended = time.thread_time()
        NOTED.spent, NOTED.count, NOTED.worked = NOTED.spent + ended - begun, NOTED.count + 1, ended


@contextmanager
def trained(backend: str, watched: bool) -> Iterator[Client | None]:
    """Train the digits on a backend; with ``watched``, give a client of its dashboard in another process."""
    with tempfile.TemporaryDirectory() as folder:
        sigma = Environment("watched", seed=0, folder=folder, control=watched)
        sigma.create_trainer(
            data="digits",
            batch_size=50,
            network='input(8, 8) + flatten() + dense(128, activation="relu") + output(10) + softmax_cross_entropy()',
            optimiser="adam",
            backend=backend,
            hooks={"watch": Stopwatch(every="1 iteration")},
            epochs=1_000_000,
        )
        if watched:
            sigma.monitors["web"] = WebMonitor(open=False)
        handle, before = sigma.run_async(), NOTED.count
        while NOTED.count - before < 100 or (watched and not sigma.messages.entries_after(0)):
            time.sleep(0.05)
        client = Client.of(sigma.messages.entries_after(0)[0][1].split()[-1]) if watched else None
        try:
            yield client
        finally:
            if client is not None:
                client.end()
            handle.stop()
            handle.wait(60)


@define(eq=False)
class Client:
    """A process that watches as a page does, while it is told to."""

    process: subprocess.Popen[str]

    @classmethod
    def of(cls, link: str) -> Client:
        """Begin it."""
        command = [sys.executable, "-m", "figures.watched", "client", link]
        made = cls(subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        made.say("off")
        return made

    def say(self, word: str) -> None:
        """Let it watch or not; return when it does."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self) -> None:
        """End it."""
        self.process.communicate("end\n")


def steps() -> str:
    """Return what a watcher in another process adds to a step, for each backend."""
    return "\n".join(_steps(backend) for backend in BACKENDS)


def _steps(backend: str) -> str:
    with trained(backend, True) as client:
        assert client is not None
        pairs = np.array([(_rate(client, "on"), _rate(client, "off")) for _ in range(PAIRS)])
    time_, training, monitors = np.moveaxis(pairs, -1, 0)
    told = [f"{backend}: a step takes {np.median(time_[:, 1]) * 1e6:.0f} us"]
    for name, found in (("time", time_), ("processor time of the training thread", training)):
        told.append(f"watched, {name}: {_change(found)} ({PAIRS} alternating pairs)")
    watched, alone = np.median(monitors, axis=0) * 100
    told.append(f"processor time of the monitors: {watched:.1f} % of one core while watched, else {alone:.1f} %")
    return f"\n{backend}, ".join(told)


def _change(found: np.ndarray) -> str:
    """Return by how much the first column is above the second: the median of the pairs with its interval."""
    added = (found[:, 0] / found[:, 1] - 1) * 100
    low, high = _interval(added)
    return f"{np.median(added):+.1f} % (95 % interval {low:+.1f} to {high:+.1f} %)"


def _rate(client: Client, say: str) -> tuple[float, float, float]:
    """Return the seconds of a step, those of the training thread's processor, and the monitors' share of one core."""
    client.say(say)
    time.sleep(SETTLED)
    begun = time.perf_counter(), NOTED.count, NOTED.worked, _monitors()
    time.sleep(BLOCK)
    while NOTED.count - begun[1] < LEAST:
        time.sleep(0.01)
    passed, count, worked, shared = (
        now - then
        for now, then in zip((time.perf_counter(), NOTED.count, NOTED.worked, _monitors()), begun, strict=True)
    )
    return passed / count, worked / count, shared / passed


def _monitors() -> float:
    """Return the processor seconds of the threads of monitors so far."""
    idents = [one.ident for one in threading.enumerate() if one.name.startswith(MONITORS) and one.ident is not None]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in idents)


def publishing() -> str:
    """Return the processor time that a published value costs the training thread, without a monitor and with one."""
    told = []
    for how, watched in (("without a monitor", False), ("while the dashboard is watched", True)):
        with trained(BACKENDS[0], watched) as client:
            if client is not None:
                client.say("on")
            inside, whole = np.array([_published() for _ in range(ROUNDS)]).T * 1e6
        low, high = _interval(whole)
        told.append(
            f"a value that a hook publishes, {how}: {np.median(whole):.2f} us, all included (95 % interval "
            f"{low:.2f} to {high:.2f} us), of which {np.median(inside):.2f} us in the call"
        )
    return "\n".join(told)


def _published() -> tuple[float, float]:
    """Return the processor seconds of a value in the call, and in all: what a step takes more than without values."""
    took = {}
    for values in (0, VALUES):
        NOTED.values = values
        time.sleep(SETTLED)
        count, spent, worked = NOTED.count, NOTED.spent, NOTED.worked
        time.sleep(BLOCK)
        while (done := NOTED.count - count) < LEAST:
            time.sleep(0.01)
        took[values] = (NOTED.spent - spent) / done, (NOTED.worked - worked) / done
    NOTED.values = 0
    return took[VALUES][0] / VALUES, (took[VALUES][1] - took[0][1]) / VALUES


def _interval(values: Sequence[float] | np.ndarray, draws: int = 2000) -> tuple[float, float]:
    """Return the bootstrapped 95 % interval of a median."""
    chosen = np.random.default_rng(0).choice(np.asarray(values), (draws, len(values)))
    low, high = np.quantile(np.median(chosen, axis=1), [0.025, 0.975])
    return float(low), float(high)


def client(link: str) -> None:
    """Watch as a page does while the standard input says ``on``, until it says ``end``."""
    parts = urlsplit(link)
    origin = f"http://{parts.netloc}"
    line = HTTPConnection(parts.netloc)
    token = json.dumps({"token": parts.fragment.removeprefix("token=")})
    line.request("POST", "/session", token, {"Origin": origin, "X-Sigma": "1", "Content-Type": "application/json"})
    cookie = (line.getresponse().headers["set-cookie"] or "").partition(";")[0]
    known = {"trainer.training.loss": 2**53}  # nothing of what was measured before
    asked = {"do": "follow", "every": 0.25, "addresses": [*known], "after": known}
    with connect(f"ws://{parts.netloc}/ws", additional_headers={"Cookie": cookie}, origin=origin) as socket:
        threading.Thread(target=_drain, args=(socket,), daemon=True).start()
        for id, word in enumerate(map(str.strip, sys.stdin), 1):
            if word == "end":
                return
            socket.send(json.dumps({"id": id, **asked} if word == "on" else {"id": -id, "do": "cancel", "of": id - 1}))
            print(word, flush=True)


def _drain(socket: Any) -> None:
    with suppress(Exception):
        for _ in socket:
            pass


def main(*wanted: str) -> None:
    """Measure what is named, by default all of it."""
    for measure in (publishing, steps):
        if measure.__name__ in wanted or not wanted:
            print(measure(), flush=True)
    with browser() as chromium:
        for shown in (page, commands):
            if shown.__name__ in wanted or not wanted:
                print(shown(chromium), flush=True)


PROCESSES: dict[str, Callable[..., None]] = {"feed": feed, "client": client}

if __name__ == "__main__":
    itself = import_module("figures.watched")  # by its name, as a run notes where its hooks come from
    first, *rest = sys.argv[1:] or [""]
    itself.PROCESSES[first](*rest) if first in PROCESSES else itself.main(*sys.argv[1:])
