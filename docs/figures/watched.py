"""Measure what watching costs: ``python -m figures.watched`` in the folder ``docs``, for about two minutes.

The page is fed eight charts of 10,000 points with 1,000 more a second, commands are given to a run of the digits, and
a run trains with and without somebody watching it, in alternating pairs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from attrs import define, field
from websockets.sync.client import connect

from figures.browser import ENDLESS, Visit, browser, run
from sigma_kernel import Environment, Hook
from sigma_kernel.contracts import Stretch
from sigma_kernel.curves import Curve, thinned
from sigma_kernel.testing import FakeView
from sigma_monitor_web.monitor import WebMonitor

CHARTS, POINTS, A_SECOND = 8, 10_000, 1_000
SETTLE, WATCHED = 6.0, 10.0  # seconds
COMMANDS = 200
PAIRS, BLOCK = 60, 0.25  # and seconds of each half of a pair
VALUES = 20  # that a hook publishes in each iteration

OBSERVE = """() => {
    window.tasks = []; window.drawn = 0; window.frames_ = [];
    new PerformanceObserver((list) => { for (const one of list.getEntries()) tasks.push(one.duration); })
        .observe({ entryTypes: ["longtask"] });
    let last = performance.now();
    const frame = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
}"""
MOVE = """() => { let n = 0; window.mover = setInterval(() => {
    n += 1;
    const canvas = document.querySelectorAll("main canvas")[1 + n % 4], box = canvas.getBoundingClientRect();
    const [clientX, clientY] = [box.left + 60 + (n * 7) % 700, box.top + 30];
    canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY, pointerType: "mouse" }));
    scrollTo(0, Math.abs((n * 5) % 1800 - 900));
}, 16); }"""
TOLD = "() => ({ tasks: tasks.splice(0), frames: frames_.splice(0) })"
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

    def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return the points after a cursor, up to this moment."""
        end = POINTS + int((time.monotonic() - self.begun) * A_SECOND / CHARTS)
        at = np.arange(after + 1, end + 1)
        values = np.sin(at / 500) + self.noise[after:end]
        return end, [Stretch(0, thinned(Curve(at, at // 600, at * 0.01, values, values, values), most))] if len(
            at
        ) else []

    def log(self, text: str) -> None:
        """Tell the link."""
        print(text, flush=True)


def feed() -> None:
    """Serve the feed until the standard input ends."""
    names = [f"trainer.synthetic.s{number}" for number in range(CHARTS)]
    charts = [{"patterns": [name], "tall": 194} for name in names]
    view = Feed(values=dict.fromkeys(names, 3.0), measured=dict.fromkeys(names, ()))
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
        window.page.wait_for_timeout(SETTLE * 1000)
        window.page.evaluate(OBSERVE)
        window.page.wait_for_timeout(WATCHED * 1000)
        rest = window.page.evaluate(TOLD)
        window.page.evaluate(MOVE)
        window.page.wait_for_timeout(WATCHED * 1000)
        moved = window.page.evaluate(TOLD)
        charts = window.page.get_by_role("region").filter(has=window.page.get_by_role("img")).count()
        window.end()
        server.communicate("")
    return "\n".join([f"charts {charts}", _page("at rest", rest), _page("moving", moved)])


def _page(name: str, told: dict[str, list[float]]) -> str:
    frames = np.array(told["frames"][5:])
    longest = max(told["tasks"], default=0.0)
    return (
        f"page, {name}: {1000 / frames.mean():.0f} frames a second (95 % within {np.quantile(frames, 0.95):.0f} ms), "
        f"{len(told['tasks'])} tasks above 50 ms (longest {longest:.0f} ms)"
    )


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


@define(eq=False)
class Stopwatch(Hook):
    """Count iterations, and publish as many values as it is told."""

    writes: Sequence[str] = ("published.**",)

    def fire(self, context: Any) -> None:
        """Publish."""
        begun = time.thread_time()
        for number in range(NOTED.values):
            context.publish(f"published.v{number}", number * 0.5)
        NOTED.spent += time.thread_time() - begun
        NOTED.count, NOTED.worked = NOTED.count + 1, time.thread_time()


def steps() -> str:
    """Return what a watcher in another process adds to a step, and what a published value costs."""
    with tempfile.TemporaryDirectory() as folder:
        sigma = Environment("watched", seed=0, folder=folder)
        sigma.create_trainer(
            data="digits",
            batch_size=50,
            network='input(8, 8) + flatten() + dense(128, activation="relu") + output(10) + softmax_cross_entropy()',
            optimiser="adam",
            hooks={"watch": Stopwatch(every="1 iteration")},
            epochs=1_000_000,
        )
        sigma.monitors["web"] = WebMonitor(open=False)
        handle = sigma.run_async()
        while not sigma.messages.after(0):
            time.sleep(0.05)
        link = sigma.messages.after(0)[0][1].split()[-1]
        client = subprocess.Popen([sys.executable, "-m", "figures.watched", "client", link], stdin=-1, text=True)
        pairs = np.array([(_rate(client, "on"), _rate(client, "off")) for _ in range(PAIRS)])
        client.communicate("end\n")
        cost = _published()
        handle.stop()
        handle.wait(60)
    told = [f"step: {np.median(pairs[:, 1, 0]) * 1e6:.0f} us"]
    for name, watched in zip(("time", "processor time of the training thread"), np.moveaxis(pairs, -1, 0), strict=True):
        added = (watched[:, 0] / watched[:, 1] - 1) * 100
        low, high = _interval(added)
        told.append(
            f"watched, {name}: {np.median(added):+.1f} % (95 % interval {low:+.1f} to {high:+.1f}, {PAIRS} pairs)"
        )
    return "\n".join([*told, f"publishing by a hook: {cost * 1e6:.2f} us a value"])


def _rate(client: Any, say: str) -> tuple[float, float]:
    client.stdin.write(f"{say}\n")
    client.stdin.flush()
    time.sleep(BLOCK / 2)
    count, worked, begun = NOTED.count, NOTED.worked, time.perf_counter()
    time.sleep(BLOCK)
    done = max(1, NOTED.count - count)
    return (time.perf_counter() - begun) / done, (NOTED.worked - worked) / done


def _published() -> float:
    NOTED.values = VALUES
    count, spent = NOTED.count, NOTED.spent
    time.sleep(3.0)
    return (NOTED.spent - spent) / max(1, NOTED.count - count) / VALUES


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
    asked = {"id": 1, "do": "follow", "every": 0.25, "addresses": ["trainer.training.loss"]}
    with ExitStack() as open_:
        for word in map(str.strip, sys.stdin):
            open_.close()
            if word == "on":
                socket = connect(f"ws://{parts.netloc}/ws", additional_headers={"Cookie": cookie}, origin=origin)
                socket = open_.enter_context(socket)
                socket.send(json.dumps(asked))
                threading.Thread(target=_drain, args=(socket,), daemon=True).start()


def _drain(socket: Any) -> None:
    with suppress(Exception):
        for _ in socket:
            pass


def main(*wanted: str) -> None:
    """Measure what is named, by default all of it."""
    if "steps" in wanted or not wanted:
        print(steps(), flush=True)
    with browser() as chromium:
        for measure in (page, commands):
            if measure.__name__ in wanted or not wanted:
                print(measure(chromium), flush=True)


PARTS: dict[str, Callable[..., None]] = {"feed": feed, "client": client}  # processes of their own

if __name__ == "__main__":
    first, *rest = sys.argv[1:] or [""]
    PARTS[first](*rest) if first in PARTS else main(*sys.argv[1:])
