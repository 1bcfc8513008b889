"""A token is what its setting says; a request reaches the application only if the guard finds nothing against it."""

from __future__ import annotations

import asyncio
import socket

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from sigma_http.attempts import TRIES, Attempts
from sigma_http.guard import HEADERS, Guard
from sigma_http.serving import address, is_loopback, listening
from sigma_http.tokens import check_token, generate_key, read_token
from sigma_kernel.errors import SigmaConfigError, SigmaStateError

BASE = "http://127.0.0.1:8470"


@pytest.mark.parametrize("token", ["short", "x" * 15, "with a space in it", "ümlauts are not ascii", 7])
def test_a_token_that_can_be_guessed_or_sent_wrongly_is_refused(token):
    with pytest.raises(SigmaConfigError, match=r"^Some\.token: must "):
        check_token("Some.token", token)


def test_a_token_is_taken_from_the_environment(monkeypatch):
    check_token("Some.token", "$NAME_OF_IT")
    monkeypatch.setenv("NAME_OF_IT", "a" * 16)
    assert read_token("Some.token", "$NAME_OF_IT") == "a" * 16
    assert read_token("Some.token", "b" * 16) == "b" * 16
    monkeypatch.setenv("NAME_OF_IT", "a" * 15)
    with pytest.raises(SigmaConfigError, match=r"NAME_OF_IT must have at least 16 characters \(it has 15\)"):
        read_token("Some.token", "$NAME_OF_IT")


def test_new_keys_differ_and_are_long():
    assert len({generate_key() for _ in range(100)}) == 100
    assert len(generate_key()) == 43


def test_wrong_keys_are_answered_at_once_and_then_one_a_second():
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(TRIES):
        assert attempts.may_try("peer")
        attempts.count_failure("peer")
    assert not attempts.may_try("peer")
    assert attempts.may_try("other")
    now[0] = 1.0
    assert attempts.may_try("peer")


def test_a_request_that_nothing_speaks_against_gets_through_with_the_headers():
    client = TestClient(Guard(PlainTextResponse("in"), {}), base_url=BASE)
    answer = client.get("/")
    assert (answer.status_code, answer.text) == (200, "in")
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert client.post("/").status_code == 405


def test_hosts_of_this_machine_are_told_apart_from_others_and_written_as_addresses():
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "[::1]", "localhost", "0.0.0.0", "example.org")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip
    assert [address("::1", 1), address("127.0.0.1", 2)] == ["http://[::1]:1/", "http://127.0.0.1:2/"]


def test_a_port_in_use_is_refused_by_its_number():
    with listening("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(SigmaStateError, match=rf"127\.0\.0\.1:{port}: cannot listen"):
            listening("127.0.0.1", port)


def test_answers_are_sent_at_once_and_not_held_back_for_more_to_come():
    async def is_at_once() -> int:
        with listening("127.0.0.1", 0) as listener:
            server = await asyncio.start_server(lambda reader, writer: accepted.put_nowait(writer), sock=listener)
            accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
            async with server:
                _, client = await asyncio.open_connection(*listener.getsockname())
                writer = await accepted.get()
                at_once = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                for end in (client, writer):
                    end.close()
                    await end.wait_closed()
        return at_once

    assert asyncio.run(is_at_once())
