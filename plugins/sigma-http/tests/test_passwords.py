"""Passwords are kept as hashes; wrong ones take ever longer; a path in front of all others is taken off."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from sigma_http.attempts import FORGOTTEN, FREE, LONGEST, GrowingDelays
from sigma_http.guard import READING, WRITING, Guard
from sigma_http.mounting import BasePath
from sigma_http.passwords import PasswordHash, hash_password, parse_hash
from sigma_kernel.errors import SigmaConfigError

RFC_7914 = (  # section 12: scrypt (P="password", S="NaCl", N=1024, r=8, p=16, dkLen=64)
    "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830da"
    "c727afb94a83ee6d8360cbdfa2cc0640"
)


def test_a_hash_is_that_of_the_rfc():
    known = PasswordHash(1024, 8, 16, b"NaCl", bytes.fromhex(RFC_7914))
    assert known.matches("password")
    assert not known.matches("Password")
    assert parse_hash("somewhere", known.to_text()) == known


def test_a_password_is_recognised_by_its_hash_alone_and_no_two_hashes_are_alike():
    first, second = hash_password("a long enough word"), hash_password("a long enough word")
    assert first.matches("a long enough word")
    assert not first.matches("a long enough w0rd")
    assert first.to_text() != second.to_text()
    assert "long" not in first.to_text() + repr(first)


@pytest.mark.parametrize("password", ["", "eleven char", "x" * 1025])
def test_a_password_that_is_short_or_endless_is_refused(password):
    with pytest.raises(SigmaConfigError, match="must have 12 to 1,024 characters"):
        hash_password(password)


@pytest.mark.parametrize(
    "text",
    [
        "plain", "scrypt$16384$8$5$c2FsdA==", "scrypt$1000$8$1$c2FsdA==$" + "A" * 44,
        "scrypt$16384$8$0$c2Fs$" + "A" * 44,
        "scrypt$8388608$8$1$c2FsdA==$" + "A" * 44, "scrypt$16384$8$1$c2FsdA==$AAAA", "scrypt$16384$8$1$c2F$" + "A" * 43,
        "bcrypt$16384$8$1$c2FsdA==$" + "A" * 44,
    ],
)  # fmt: skip
def test_a_word_that_is_no_hash_or_that_costs_too_much_to_check_is_refused(text):
    with pytest.raises(SigmaConfigError, match=r"^people:3: .*`sigma password` writes"):
        parse_hash("people:3", text)


def test_each_wrong_password_doubles_the_time_until_the_next_and_a_right_one_ends_that():
    now = [100.0]
    delays = GrowingDelays(lambda: now[0])
    waits = []
    for _ in range(FREE + 12):
        delays.count_failure("peer")
        waits.append(delays.wait("peer"))
    assert waits[: FREE + 4] == [0.0] * (FREE - 1) + [1.0, 2.0, 4.0, 8.0, 16.0]
    assert waits[-1] == LONGEST
    assert delays.wait("other") == 0.0
    now[0] += 299.0
    assert delays.wait("peer") == 1.0
    now[0] += FORGOTTEN
    delays.count_failure("peer")
    assert delays.wait("peer") == 0.0
    for _ in range(FREE):
        delays.count_failure("peer")
    delays.forget("peer")
    assert delays.wait("peer") == 0.0


def test_peers_with_wrong_passwords_are_counted_up_to_a_number():
    delays = GrowingDelays(lambda: 100.0)
    for peer in range(1001):
        for _ in range(FREE):
            delays.count_failure(str(peer))
    assert [delays.wait(str(peer)) for peer in (0, 1, 1000)] == [0.0, 1.0, 1.0]


def test_a_server_below_a_path_answers_with_and_without_it():
    async def path(request):
        return PlainTextResponse(request.url.path)

    plain = Guard(
        Starlette(routes=[Route("/", path), Route("/in", path, methods=["POST", "GET"])]), {"/in": WRITING | READING}
    )
    client = TestClient(BasePath(plain, "/sigma"), base_url="http://127.0.0.1")
    assert client.get("/sigma/").text == client.get("/").text == "/"
    assert client.get("/sigma/in").text == "/in"
    assert client.post("/sigma/in").status_code == 403  # its checks see the path as well
    assert client.get("/sigmas/in").status_code == 404
    moved = client.get("/sigma", follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (308, "/sigma/")


def test_a_page_that_came_without_encryption_is_another_site_for_a_server_that_encrypts():
    client = TestClient(Guard(PlainTextResponse("in"), {"/": WRITING}), base_url="https://127.0.0.1")
    headers = {"x-sigma": "1", "content-type": "application/json"}
    for origin, status in (("http://127.0.0.1", 403), ("https://127.0.0.1", 200), ("https://evil.example", 403)):
        assert client.post("/", headers={**headers, "origin": origin}, content=b"{}").status_code == status
