"""Connections on which nothing is said: how many a client may have, and for how long."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import Any

import pytest
from attrs import define

from sigma_http import listening as module
from sigma_http.listening import SilentConnections
from sigma_http.serving import listening, run_server, serve_until

HERE, OTHER = "127.0.0.1", "127.0.0.2"  # two clients


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer each request with two letters."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def end() -> None:
    """Do nothing."""


@define(eq=False)
class Served:
    """A server in a thread, and the sockets of its clients."""

    port: int
    sockets: ExitStack

    def connect(self, source: str = HERE, says: bytes = b"") -> socket.socket:
        """Open a connection from an address, and send something."""
        line = socket.create_connection((HERE, self.port), timeout=30, source_address=(source, 0))
        self.sockets.callback(line.close)
        line.sendall(says)
        return line

    def ask(self, source: str = HERE) -> bytes:
        """Return the answer to a request."""
        with closing(HTTPConnection(HERE, self.port, timeout=30, source_address=(source, 0))) as line:
            line.request("GET", "/")
            return line.getresponse().read()


@pytest.fixture
def served() -> Iterator[Served]:
    over, listener = threading.Event(), listening(HERE, 0)
    thread = threading.Thread(target=run_server, args=(serve_until(answer, listener, over.wait, end),), daemon=True)
    thread.start()
    try:
        with ExitStack() as sockets:
            yield Served(int(listener.getsockname()[1]), sockets)
    finally:
        over.set()
        thread.join(30)


def is_closed(line: socket.socket) -> bool:
    """Return whether the server closes a connection without a word, within a second."""
    line.settimeout(1.0)
    try:
        return line.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_a_client_has_few_silent_connections_and_others_are_served(served: Served) -> None:
    lines = [served.connect(OTHER) for _ in range(module.MOST_OF_CLIENT + 6)]
    assert served.ask() == b"ok", "another client"
    assert all(is_closed(line) for line in lines[module.MOST_OF_CLIENT :])
    lines[0].sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    assert lines[0].recv(15) == b"HTTP/1.1 200 OK"
    assert served.ask(OTHER) == b"ok", "one that has spoken makes room"


def test_what_is_not_said_in_time_ends_the_connection(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_SILENCE", 0.5)
    spoken = served.connect(says=b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    assert spoken.recv(15) == b"HTTP/1.1 200 OK"
    began = time.monotonic()
    for line in (served.connect(), served.connect(says=b"GET / HTTP/1.1\r\nhost: ")):
        line.settimeout(20)
        assert line.recv(1) == b""
    assert time.monotonic() - began >= 0.5
    spoken.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    assert b"HTTP/1.1 200 OK" in spoken.recv(4096) + spoken.recv(4096), "it may stay open between requests"


def test_many_connections_at_once_that_ask_are_all_answered(served: Served) -> None:
    lines = [served.connect(says=b"GET / HTTP/1.1\r\nhost: x\r\n\r\n") for _ in range(3 * module.MOST_OF_CLIENT)]
    assert [line.recv(15) for line in lines] == [b"HTTP/1.1 200 OK"] * len(lines)


def test_of_all_clients_the_oldest_silent_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SILENT", 2)
    silent, lines = SilentConnections(set(), lambda: 0.0), list[socket.socket]()
    with ExitStack() as sockets:
        for number in range(4):
            ours, theirs = map(sockets.enter_context, socket.socketpair())
            silent.admit(lambda ours=ours, number=number: (ours, (f"10.0.0.{number}", 1)))
            lines.append(theirs)
        silent.look()
        assert [is_closed(line) for line in lines] == [True, True, False, False]


def test_connections_are_read_now_and_then_while_many_are_accepted() -> None:
    silent, pauses = SilentConnections(set()), 0
    with ExitStack() as sockets:
        for number in range(2 * module.IN_A_ROW + 2):
            ours, _ = map(sockets.enter_context, socket.socketpair())
            try:
                silent.admit(lambda ours=ours, number=number: (ours, (f"10.0.0.{number}", 1)))
            except BlockingIOError:
                pauses += 1
    assert pauses == 2
