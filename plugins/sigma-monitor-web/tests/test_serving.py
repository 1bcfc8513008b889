"""A run with its dashboard: what a browser gets, and that no client slows or ends the training."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from starlette.websockets import WebSocketDisconnect, WebSocketState
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from sigma_http import serving as http_serving
from sigma_http.serving import close_idle, listening
from sigma_kernel import Environment, every
from sigma_kernel.errors import SigmaStateError, SigmaTrainingError
from sigma_monitor_control.budget import PROCESS
from sigma_monitor_control.server import Server
from sigma_monitor_web import serving, talk
from sigma_monitor_web.monitor import IdleTimeout, WebMonitor
from sigma_monitor_web.opening import open_browser
from sigma_testing import Descent, Do, FakeView, MonitorSuite, Slow, Sweep, small_environment

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the ends of monitors for as long as a slow machine needs."""
    monkeypatch.setattr("sigma_kernel.running.GRACE", PATIENCE)


class TestWebMonitor(MonitorSuite):
    def make(self) -> WebMonitor:
        return WebMonitor(open=False)


def until(holds: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def find_free_port() -> int:
    """Return a port that no other dashboard of this machine takes between two servers of a test."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Page:
    """What the page of a run does."""

    def __init__(self, link: str) -> None:
        self.link, self.parts = link, urlsplit(link)
        self.origin = f"http://{self.parts.netloc}"

    def enter(self) -> str:
        """Exchange the token of the link for a cookie."""
        headers = {"Origin": self.origin, "X-Sigma": "1", "Content-Type": "application/json"}
        token = self.parts.fragment.removeprefix("token=")
        return self.fetch("POST", "/session", json.dumps({"token": token}), headers)[1]["set-cookie"].partition(";")[0]

    def fetch(self, method: str, path: str, body: str | None = None, headers: Any = ()) -> tuple[int, Any, bytes]:
        """Return the status, the headers and the body of an answer."""
        connection = HTTPConnection(self.parts.netloc, timeout=PATIENCE)
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        connection.close()
        return found

    def answers(self) -> bool:
        """Return whether somebody listens."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self.parts.port or 0))) == 0

    def open(self, cookie: str, **more: Any) -> ClientConnection:
        """Open the socket."""
        url = f"ws://{self.parts.netloc}/ws"
        return connect(url, additional_headers={"Cookie": cookie}, origin=self.origin, max_size=None, **more)  # type: ignore[arg-type]


@contextmanager
def dashboard(**settings: Any) -> Iterator[tuple[Environment, Page]]:
    """Train in the background with a dashboard."""
    with small_environment(Sweep(), hooks={"slow": Slow()}) as sigma:
        sigma.monitors["web"] = WebMonitor(open=False, **settings)
        handle = sigma.run_async()
        until(lambda: sigma.messages.entries_after(0))
        yield sigma, Page(sigma.messages.entries_after(0)[0][1].removeprefix("dashboard: "))
        handle.stop()
        assert handle.wait(PATIENCE)


def asked(line: ClientConnection, **document: Any) -> Any:
    """Return the answer to a request."""
    line.send(json.dumps({"id": 1, **document}))
    answer = json.loads(line.recv(PATIENCE))
    if "event" in answer:  # a command is acknowledged
        assert answer["event"]["ticket"]["state"] == "queued"
        answer = json.loads(line.recv(PATIENCE))
    assert answer["id"] == 1
    return answer.get("result", answer.get("error"))


def test_a_page_enters_reads_and_steers() -> None:
    with dashboard() as (sigma, page):
        assert page.fetch("GET", "/")[0] == 200
        with page.open(page.enter()) as line:
            assert asked(line, do="hello")["scopes"] == ["read", "steer"]
            done = asked(line, do="set", pattern="trainer.optimiser.learning_rate", value=0.25)
            assert done["state"] == "applied", done
            assert sigma.get("trainer.optimiser.learning_rate") == 0.25
            assert asked(line, do="set", pattern="trainer.optimiser.learning_rate", value=-1)["state"] == "refused"


def test_a_binary_message_is_answered_in_a_sentence() -> None:
    with dashboard() as (sigma, page), page.open(page.enter()) as line:
        line.send(b"\0\1")
        message = json.loads(line.recv(PATIENCE))["error"]["message"]
        assert message.endswith("Send one JSON object to a line.")
        assert asked(line, do="hello")["name"] == sigma.name


def test_what_has_become_of_a_command_is_told_without_waiting_for_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "SOON", 3600.0)
    for name, value in {"rest": 1e9, "longest": 1e9, "_free": 0.0}.items():  # and set back at the end
        monkeypatch.setattr(talk.PROCESS, name, value)
    with dashboard() as (_, page), page.open(page.enter()) as line:
        assert asked(line, do="set", pattern="trainer.optimiser.learning_rate", value=0.25)["state"] == "applied"


def test_what_is_followed_arrives_until_the_run_is_over() -> None:
    with dashboard() as (sigma, page), page.open(page.enter()) as line:
        line.send(json.dumps({"id": 2, "do": "follow", "every": 0.1, "addresses": ["trainer.training.loss"]}))
        seen: list[int] = []
        while len(seen) < 20:
            event = json.loads(line.recv(PATIENCE))["event"]
            for one in event.get("series", {}).get("trainer.training.loss", {}).get("stretches", []):
                seen += one["iteration"]
        assert seen == sorted(set(seen))
        sigma.stop()
        with pytest.raises(ConnectionClosed) as closed:
            drained(line)
        code = closed.value.rcvd and closed.value.rcvd.code
        assert code in (talk.OVER, None)  # None: the connection was gone before the frame was read


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", '{"id": 1}', '{"do": 1, "id": 1}', '{"id": 1, "do": "nothing"}', "{" * 10**5]
)
def test_a_malformed_document_is_answered_and_the_line_stays_open(text: str) -> None:
    with dashboard() as (_, page), page.open(page.enter()) as line:
        if text:
            line.send(text)
            assert "error" in json.loads(line.recv(PATIENCE))
        assert asked(line, do="hello")["protocol"] == 1


def test_a_message_that_is_too_long_ends_the_line_alone() -> None:
    with dashboard() as (sigma, page):
        cookie = page.enter()
        with page.open(cookie) as line:
            line.send("x" * (serving.LONGEST + 1))
            with pytest.raises(ConnectionClosed):
                line.recv(PATIENCE)
        with page.open(cookie) as line:
            assert asked(line, do="hello")["name"] == sigma.name


def test_without_a_cookie_the_socket_does_not_open() -> None:
    with dashboard() as (_, page):
        for cookie in ("", "sigma-0000=x"):
            with pytest.raises(InvalidStatus) as refused:
                page.open(cookie)
            assert refused.value.response.status_code == 403


def drained(line: ClientConnection) -> None:
    """Read until it is closed."""
    while True:
        line.recv(PATIENCE)


def iterations(sigma: Environment) -> int:
    return int(sigma.get("trainer.iteration"))


@pytest.mark.long
def test_clients_that_are_frozen_silent_or_many_do_not_hold_up_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "STALLED", 1.0)
    monkeypatch.setattr(http_serving, "IDLE", 20)
    with dashboard() as (sigma, page), ExitStack() as stack:
        cookie, port = page.enter(), page.parts.port
        frozen = stack.enter_context(page.open(cookie, max_queue=1))  # reads nothing from here on
        for number in range(50):
            frozen.send(json.dumps({"id": number, "do": "entries", "pattern": "**"}))
        frozen.send(json.dumps({"id": 99, "do": "follow", "every": 0.1, "addresses": ["trainer.training.loss"]}))
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(200)]
        half = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        half.sendall(b"GET / HTTP/1.1\r\nHost: ")
        tracemalloc.start()
        before = iterations(sigma)
        until(lambda: iterations(sigma) > before + 200)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held < 50e6
        until(lambda: sum(is_closed(one) for one in idle) >= 150)  # they hold the places of others
        for one in idle:
            one.close()  # while there are too many, a new connection may be the one that is closed
        with page.open(page.enter()) as line:  # others are served all the same
            assert asked(line, do="hello")["name"] == sigma.name


class _Idle:
    """A connection that has not asked for anything."""

    cycle = None

    def __init__(self) -> None:
        self.transport, self.closed = self, False

    def close(self) -> None:
        self.closed = True


def test_the_oldest_of_many_idle_connections_are_closed() -> None:
    seen = dict[Any, None]()
    connections = [_Idle() for _ in range(50)]
    for count in range(1, 51):
        close_idle(seen, {*connections[:count]}, 40)
    assert [one.closed for one in connections] == [True] * 10 + [False] * 40
    close_idle(seen, {*connections[10:]}, 40)
    assert [*seen] == connections[10:]


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server has closed a connection."""
    connection.settimeout(0.0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_connections_beyond_the_limit_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "CONNECTIONS", 2)
    with dashboard() as (_, page), ExitStack() as stack:
        cookie = page.enter()
        for _ in range(2):
            asked(stack.enter_context(page.open(cookie)), do="hello")
        with page.open(cookie) as line, pytest.raises(ConnectionClosed) as closed:
            line.recv(PATIENCE)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == talk.FULL


def test_a_server_that_dies_leaves_the_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise RuntimeError("the server is gone")

    monkeypatch.setattr(serving.WebServer, "run", fail)
    with small_environment(Sweep(), epochs=3) as sigma:
        sigma.monitors["web"] = WebMonitor(open=False)
        assert sigma.run().status == "finished"
        texts = [text for _, text in sigma.messages.entries_after(0)]
    assert texts[1] == "monitor 'web' failed: RuntimeError: the server is gone; training continues"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SigmaStateError, match=rf"127.0.0.1:{port}: cannot listen: .*in use"):
            listening("127.0.0.1", port)


def test_the_first_free_port_is_taken_and_released() -> None:
    with listening("127.0.0.1", 0) as first, listening("127.0.0.1", 0) as second:
        assert first.getsockname()[1] != second.getsockname()[1]
    with dashboard() as (_, page):
        pass
    until(lambda: not [one for one in threading.enumerate() if one.name == "sigma-web"])
    with socket.socket() as free:
        assert free.connect_ex(("127.0.0.1", page.parts.port)) != 0


def test_two_runs_on_one_host_have_cookies_of_their_own() -> None:
    with dashboard() as (_, one), dashboard() as (_, other):
        cookies = [one.enter(), other.enter()]
        both = "; ".join(cookies)
        assert cookies[0].partition("=")[0] != cookies[1].partition("=")[0]
        for page in (one, other):
            with page.open(both) as line:
                assert asked(line, do="hello")["protocol"] == 1
        with pytest.raises(InvalidStatus):
            one.open(cookies[1])


def test_the_browser_is_opened_unless_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda link: opened.append(read_redirect(link)))
    monkeypatch.setenv("DISPLAY", ":0")
    with small_environment(Sweep(), epochs=1) as sigma:
        sigma.monitors["web"] = WebMonitor()
        sigma.run()
        link = sigma.messages.entries_after(0)[0][1].removeprefix("dashboard: ")
    assert opened == [link]


def read_redirect(link: str) -> str:
    """Return where a file leads that the browser is given, and that nobody else can read."""
    path = Path(unquote(urlsplit(link).path))
    assert path.stat().st_mode & 0o777 == 0o600
    return unescape(re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', path.read_text())[0])


@pytest.mark.parametrize("succeeds", [True, False])
def test_the_key_is_in_no_command_line_and_its_file_goes(monkeypatch: pytest.MonkeyPatch, succeeds: bool) -> None:
    link, opened = 'http://127.0.0.1:8470/#token=a"b&c', list[str]()
    monkeypatch.setattr("webbrowser.open", lambda link: [opened.append(link), succeeds][1])
    monkeypatch.setenv("DISPLAY", ":0")
    assert open_browser(link, kept=0.2) is succeeds
    (given,) = opened
    assert given.startswith("file:///")
    assert "token" not in given
    if succeeds:
        assert read_redirect(given) == link
    until(lambda: not Path(unquote(urlsplit(given).path)).exists())


def test_a_link_whose_file_cannot_be_written_is_not_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("webbrowser.open", lambda link: pytest.fail("the browser would be shown the key"))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert not open_browser("http://127.0.0.1:8470/#token=abc")


def test_a_dashboard_stays_open_after_the_run_until_its_page_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda link: True)
    monkeypatch.setenv("DISPLAY", ":0")
    with small_environment(Sweep(), epochs=2) as sigma:
        sigma.monitors["web"] = WebMonitor(port=find_free_port())
        assert sigma.run().status == "finished"
        page = Page(sigma.messages.entries_after(0)[0][1].removeprefix("dashboard: "))
        lingering = threading.Thread(target=sigma.linger)
        lingering.start()
        until(lambda: page.answers())
        with page.open(page.enter()) as line:  # the same key, at the same address
            assert asked(line, do="status")["status"] == "finished"
            assert asked(line, do="get", pattern="trainer.iteration") == {"trainer.iteration": 10}
            assert lingering.is_alive()
        monkeypatch.setattr(talk.WebLines, "count", 0)
        lingering.join(PATIENCE)
        assert not lingering.is_alive()


def test_a_failed_run_is_shown_with_its_reason_until_its_page_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda link: True)
    monkeypatch.setenv("DISPLAY", ":0")
    with small_environment(Sweep(), epochs=2000) as sigma:
        sigma.monitors["web"] = WebMonitor(port=find_free_port())
        sigma.trainer("trainer").optimiser = Descent(learning_rate=1e30)
        with pytest.raises(SigmaTrainingError):
            sigma.run()
        page = Page(sigma.messages.entries_after(0)[0][1].removeprefix("dashboard: "))
        lingering = threading.Thread(target=sigma.linger)
        lingering.start()
        until(lambda: page.answers())
        with page.open(page.enter()) as line:
            told = asked(line, do="status")
            assert told["status"] == "failed"
            assert "Lower the learning rate" in told["why"]
        monkeypatch.setattr(talk.WebLines, "count", 0)
        lingering.join(PATIENCE)
        assert not lingering.is_alive()


@contextmanager
def failing(monitor: WebMonitor) -> Iterator[tuple[Any, ClientConnection, threading.Thread, list[Any]]]:
    """Yield a run that has failed while its page is open, its connection, its thread, and what that returns."""
    armed, ended = threading.Event(), list[Any]()

    def go_wild(context: Any) -> None:
        if armed.is_set():
            context.command("set", pattern="optimiser.learning_rate", value=1e30)

    def train() -> None:
        try:
            ended.append(sigma.run(stay=True))
        except SigmaTrainingError as error:
            ended.append(error)

    hooks = {"wild": Do(does=go_wild, every=every(1, "iteration")), "slow": Slow()}
    with small_environment(Sweep(), hooks=hooks, epochs=2000) as sigma:
        sigma.monitors["web"] = monitor
        training = threading.Thread(target=train)
        training.start()
        until(lambda: sigma.messages.entries_after(0))
        page = Page(sigma.messages.entries_after(0)[0][1].removeprefix("dashboard: "))
        with page.open(page.enter()) as line:
            armed.set()
            until(lambda: sigma.state == "failed")
            yield sigma, line, training, ended
        training.join(PATIENCE)
        assert not training.is_alive()


def test_a_run_that_fails_while_its_page_is_open_is_rewound_set_and_goes_on() -> None:
    with failing(WebMonitor(open=False)) as (_, line, _, ended):
        told = asked(line, do="status")
        at = told["trainers"]["trainer"]["iteration"]
        assert told["status"] == "failed"
        assert f"at iteration {at}" in told["why"]
        end = [row for _, row in asked(line, do="journal") if row.get("event") == "end"][-1]
        assert (end["failed"], end["good"]) == (True, at - 2)
        for name, arguments in (("rewind", {"to": at - 2}), ("detach", {"name": "wild"})):
            assert asked(line, do="command", name=name, arguments=arguments)["state"] == "applied"
        assert asked(line, do="set", pattern="learning_rate", value=0.05)["state"] == "applied"
        assert asked(line, do="status")["status"] == "failed"
        assert asked(line, do="command", name="go")["state"] == "applied"
        assert asked(line, do="status")["status"] == "running"
        assert asked(line, do="command", name="stop")["state"] == "applied"
        until(lambda: bool(ended))
    assert ended[0].status == "stopped"


def test_a_run_that_fails_ends_once_its_page_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_monitor_web.monitor.PATIENCE", 0.1)
    monitor = WebMonitor(open=False)
    with failing(monitor) as (sigma, _, training, ended):
        training.join(0.3)
        assert training.is_alive()
        assert monitor.is_attended()
    assert isinstance(ended[0], SigmaTrainingError)
    sigma.linger()  # returns at once


def test_nothing_lingers_where_nobody_has_looked() -> None:
    before = {*threading.enumerate()}  # those of other tests may still be ending
    with small_environment(Sweep(), epochs=1) as sigma:
        sigma.monitors["web"] = WebMonitor(open=False)
        sigma.run()
        sigma.linger()  # returns at once
    begun = {*threading.enumerate()} - before
    assert not [one for one in begun if one.name.startswith("sigma-control-reader")]


def test_everybody_has_left_when_no_page_was_open_for_some_seconds() -> None:
    now, lines = [0.0], talk.WebLines()
    left = IdleTimeout(lines, 10.0, lambda: now[0])
    assert not left(0.0)
    now[0] = 9.0
    assert not left(0.0)
    lines._open.append(None)  # type: ignore[arg-type]  # a page
    assert not left(0.0)
    lines._open.clear()
    now[0] = 18.0
    assert not left(0.0)
    now[0] = 28.0
    assert left(0.0)


class Gone:
    """A connection whose client has vanished, which nothing has told the server yet."""

    application_state = WebSocketState.CONNECTED

    async def send_text(self, text: str) -> None:
        raise WebSocketDisconnect(1006)

    async def close(self, code: int) -> None:
        raise WebSocketDisconnect(1006)


class Silent:
    waits = is_subscribed = False

    def last_lines(self) -> list[str]:
        return ["the last words"]


def test_a_client_that_has_vanished_does_not_disturb_the_good_bye() -> None:
    async def ended() -> None:
        await talk.WebLine(Gone(), Silent()).end()  # type: ignore[arg-type]

    asyncio.run(ended())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a browser has a window")
def test_no_browser_covers_the_terminal_where_there_are_no_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda link: opened.append(link) or True)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert not open_browser("http://127.0.0.1:8470/")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert open_browser("http://127.0.0.1:8470/")
    assert opened == ["http://127.0.0.1:8470/"]


def test_the_page_and_the_socket_share_one_budget_of_work() -> None:
    assert talk.WebLines().budget is PROCESS
    with socket.socket() as listener:
        assert Server(FakeView(), listener, 0).budget is PROCESS
