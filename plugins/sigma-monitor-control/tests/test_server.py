"""The server: whatever a client does, the others are served, and memory stays bounded."""

from __future__ import annotations

import json
import os
import socket
import tracemalloc
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from sigma_monitor_control import places, server as module
from sigma_monitor_control.protocol import LONGEST


def said(client: socket.socket) -> list[Any]:
    """Return the documents that have arrived."""
    data = bytearray()
    with suppress(BlockingIOError):
        while piece := client.recv(1 << 20):
            data += piece
    return [json.loads(line) for line in data.splitlines()]


def ended(client: socket.socket) -> bool:
    """Return whether the server has closed a connection."""
    client.setblocking(False)
    try:
        while client.recv(1 << 20):
            continue
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def test_a_request_is_answered_in_a_turn(bench: Any) -> None:
    client = bench.connected()
    client.send(b'{"id": 1, "do": "get", "pattern": "accuracy"}\n')
    bench.turn()
    bench.turn()
    assert said(client) == [{"id": 1, "result": {"trainer.validation.accuracy": 0.75}}]


def test_a_line_may_come_in_pieces_and_several_at_once(bench: Any) -> None:
    client = bench.connected()
    for piece in (b'{"id": 1, "do": "he', b'llo"}\n\n  \n{"id": 2, "do": "hello"}\n{"id": 3,'):
        client.send(piece)
        bench.turn(2)
    assert [one["id"] for one in said(client)] == [1, 2]
    client.send(b' "do": "hello"}\n')
    bench.turn()
    assert [one["id"] for one in said(client)] == [3]


def test_what_a_client_waits_for_is_cancelled_when_it_leaves(bench: Any) -> None:
    client, read = bench.connected(), Future[Any]()
    bench.server._aside = SimpleNamespace(do=lambda act: read, end=lambda: None)
    client.send(b'{"id": 1, "do": "splits"}\n')
    bench.turn(2)
    assert not read.cancelled()
    client.close()
    bench.turn(2)
    assert read.cancelled()


def test_garbage_is_answered_and_harms_nobody(bench: Any) -> None:
    bad, good = bench.connected(), bench.connected()
    bad.send(bytes(range(256)) * 20 + b"\n" + b'{"id": 9, "do": "hello"}\n')
    good.send(b'{"id": 1, "do": "hello"}\n')
    bench.turn(3)
    assert said(good)[0]["id"] == 1
    answers = said(bad)
    assert answers[-1]["id"] == 9
    assert all("error" in one for one in answers[:-1])


def test_a_half_written_line_of_one_who_leaves_is_forgotten(bench: Any) -> None:
    client = bench.connected()
    client.send(b'{"id": 1, "do": "com')
    bench.turn(2)
    client.close()
    bench.turn(2)
    assert bench.server.held_bytes == 0
    assert bench.server.count == 0


def test_one_who_leaves_before_the_answer_is_forgotten(bench: Any) -> None:
    client = bench.connected()
    client.send(b'{"id": 1, "do": "hello"}\n')
    client.close()
    bench.turn(3)
    assert bench.server.count == 0


@pytest.mark.parametrize("end", [b"", b'"}\n'])
def test_a_line_that_is_too_long_ends_its_connection_alone(bench: Any, end: bytes) -> None:
    client, other = bench.connected(), bench.connected()
    rest = memoryview(b'{"id": 1, "do": "' + b"x" * (LONGEST + 1) + end)
    for _ in range(200):
        if rest:
            with suppress(BlockingIOError, ConnectionError):
                rest = rest[client.send(rest) :]
        bench.turn()
    assert said(client)[0]["error"]["message"] == "document: is longer than 4,194,304 bytes. Send less at a time."
    assert ended(client)
    assert bench.server.held_bytes == 0
    other.send(b'{"id": 1, "do": "hello"}\n')
    bench.turn()
    assert said(other)[0]["id"] == 1


def test_one_who_never_reads_is_heard_no_more_and_then_dropped(bench: Any) -> None:
    bench.view.texts = ["x" * 1000] * 100
    client = bench.connected()
    for _ in range(300):
        with suppress(BlockingIOError):
            client.send(b'{"id": 1, "do": "messages"}\n' * 50)
        bench.turn()
    assert module.UNREAD <= bench.server.held_bytes < module.UNREAD + 2 * LONGEST
    bench.wait(module.STALLED + 1)
    bench.turn()
    assert bench.server.count == bench.server.held_bytes == 0


def test_one_who_reads_a_byte_at_a_time_gets_fewer_events_and_no_memory(bench: Any) -> None:
    bench.view.texts = ["x" * 100_000]
    client = bench.connected()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.send(b'{"id": 1, "do": "follow", "every": 0.1}\n')
    bench.turn(2)
    held = []
    for second in range(200):
        bench.view.texts.append(f"{second}" + "y" * 100_000)
        bench.wait(1.0)
        bench.turn()
        client.recv(1)
        held.append(bench.server.held_bytes)
    assert max(held) < 2 * module.UNREAD
    assert bench.server.count == 0  # it was dropped in the end


def test_one_who_has_not_read_for_long_as_nothing_came_is_not_dropped(bench: Any) -> None:
    client = bench.connected()
    bench.turn()
    bench.wait(10 * module.STALLED)
    client.send(b'{"id": 1, "do": "messages"}\n')
    bench.view.texts = ["x" * 1000] * 1000  # more than the system takes at once
    bench.turn()
    assert bench.server.held_bytes > 0
    bench.wait(module.STALLED - 1)
    bench.turn()
    assert bench.server.count == 1


def test_all_together_hold_a_bounded_number_of_bytes(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD", 3_000_000)
    clients = [bench.connected() for _ in range(8)]
    rests = [memoryview(b"x" * (900_000 if client is clients[3] else 500_000)) for client in clients]
    most = 0
    for _ in range(30):
        for i, client in enumerate(clients):
            with suppress(BlockingIOError, ConnectionError):
                rests[i] = rests[i][client.send(rests[i]) :]
        bench.turn()
        most = max(most, bench.server.held_bytes)
    assert most <= 3_000_000
    assert ended(clients[3])  # which held most
    assert 5 <= bench.server.count < 8


def test_thousands_of_idle_connections_are_bounded_and_a_new_one_is_served(bench: Any) -> None:
    busy = bench.connected()
    busy.send(b'{"id": 1, "do": "watch", "patterns": ["accuracy"]}\n')
    bench.turn()
    tracemalloc.start()
    clients = []
    for i in range(400):
        clients.append(bench.connected())
        if i % 50 == 49:
            bench.wait(1.0)
            bench.turn(2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bench.server.count <= module.CONNECTIONS
    assert peak < 10_000_000
    assert ended(clients[0])
    assert not ended(clients[-1])
    assert not ended(busy)
    new = bench.connected()
    new.send(b'{"id": 1, "do": "hello"}\n')
    bench.turn(2)
    assert said(new)[0]["id"] == 1


def test_another_user_is_refused(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "user", lambda connection: os.getuid() + 1)
    client = bench.connected()
    client.send(b'{"id": 1, "do": "command", "name": "stop"}\n')
    bench.turn(2)
    assert [one["error"]["message"] for one in said(client)] == [
        "this run belongs to another user. Log in as that user to steer it."
    ]
    assert ended(client)
    assert bench.view.sent == []


def test_the_user_at_the_other_end_is_known(bench: Any) -> None:
    assert places.user(bench.connected()) == os.getuid()


def test_one_who_asks_without_a_pause_gets_a_share_of_the_time(bench: Any) -> None:
    client = bench.connected()
    client.send(b'{"id": 1, "do": "status"}\n' * 1000)
    bench.turn(2)
    assert 0 < len(said(client)) <= 2 * module.REQUESTS
    assert bench.server.pause >= min(bench.server.rest, module.LONGEST_REST) > 0


def test_the_server_looks_rarely_while_nothing_is_asked(bench: Any) -> None:
    client = bench.connected()
    bench.turn()
    assert bench.server.pause < module.IDLE  # a request is expected
    bench.wait(10)
    bench.turn()
    assert bench.server.pause == module.IDLE
    client.send(b'{"id": 1')
    bench.turn()
    assert bench.server.pause < module.IDLE


def test_a_served_run_ends_without_waiting_for_its_clients(serve: Any) -> None:
    view = serve()
    (path,) = places.sockets()
    idle, watching = (socket.socket(socket.AF_UNIX) for _ in range(2))
    for client in (idle, watching):
        client.connect(str(path))
    watching.sendall(b'{"id": 1, "do": "watch", "patterns": ["accuracy"]}\n{"id": 2, "do": "hello"}\n')
    lines = watching.makefile("rb")
    assert {json.loads(lines.readline())["id"] for _ in range(2)} == {1, 2}
    view.over.set()
    assert lines.readlines() == []
    assert idle.recv(1) == b""
    for client in (lines, watching, idle):
        client.close()
