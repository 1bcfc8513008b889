"""Whoever should not get in, does not: every route, method, key, host and origin, denied unless listed here."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from sigma_http.attempts import TRIES, Attempts
from sigma_http.guard import MOST_BODY, POLICY, name_of
from sigma_kernel import Panel
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.budget import WorkBudget
from sigma_monitor_control.protocol import Conversation
from sigma_monitor_web import application as application_module
from sigma_monitor_web.application import Application
from sigma_monitor_web.exposition import expose_view
from sigma_monitor_web.files import file
from sigma_monitor_web.keys import Keys
from sigma_monitor_web.layout import PageLayout
from sigma_monitor_web.monitor import WebMonitor
from sigma_testing import FakeView

BASE = "http://127.0.0.1:8470"
JSON = {"content-type": "application/json"}
OWN = {"x-sigma": "1", "origin": BASE, **JSON}
ROUTES = (
    "/",
    "/app.js",
    "/session",
    "/login",
    "/link",
    "/leave",
    "/layout.json",
    "/panels/mine.js",
    "/metrics",
    "/nothing",
    "/../secret",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
HOSTS = (
    "127.0.0.1:8470",
    "localhost:1234",
    "[::1]:8470",
    "evil.example",
    "127.0.0.1.evil.example",
    "",
    "127.0.0.1@evil",
)
OURS = HOSTS[:3]
ORIGINS = (None, "same", "http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8470.evil.example")
SESSIONS = ("none", "wrong", "read", "steer")
OPEN = ("/", "/app.js")  # the page holds no secrets
HELD = ("/session", "/layout.json", "/panels/mine.js")  # for those who have come in


@define(eq=False)
class Run:
    """A run that is served."""

    view: FakeView = field(factory=FakeView)
    name: str = "mine"
    where: str = "monitor"

    def talk(self, run: str, scopes: frozenset[str], who: str) -> Any:
        """Return a conversation with the fake view."""
        return Conversation(self.view, scopes, who=who)

    def metrics(self) -> tuple[bytes, str]:
        """Return the exposition of the fake view."""
        return expose_view(self.view)


@pytest.fixture
def application(tmp_path: Path) -> Application:
    made = {"index.html": file(b"<!doctype html>", ".html"), "app.js": file(b"1", ".js")}
    panels = {"mine": (Panel("Mine", "2"), file(b"2", ".js"))}
    return Application(Run(), Keys(), made, PageLayout(tmp_path / "layout.json", panels), panels)


@pytest.fixture
def client(application: Application) -> Iterator[TestClient]:
    with TestClient(application.guard_application(), base_url=BASE, raise_server_exceptions=False) as made:
        yield made


def headers(application: Application, host: str, origin: str | None, session: str) -> dict[str, str]:
    found = {"host": host, **JSON, "x-sigma": "1"}
    if origin is not None:
        found["origin"] = f"http://{host}" if origin == "same" else origin
    if session != "none":
        keys = {"read": application.keys.read, "steer": application.keys.steer, "wrong": "x"}
        entered = application.keys.enter(keys[session])
        found["cookie"] = f"{application.cookie}={entered[0] if entered else 'x' * 43}"
    return found


def expected(route: str, method: str, host: str, origin: str | None, session: str) -> set[int]:
    """Return the statuses that are right; whatever is not listed is denied."""
    inside = session in ("read", "steer")
    if host not in OURS:
        return {400, 421}
    if method in ("GET", "HEAD"):
        if route in OPEN:
            return {200}
        if route in HELD:
            return {200} if inside else {401}
        if route == "/link":
            return {200} if session == "steer" else {403} if inside else {401}
        return {401} if route == "/metrics" else {405} if route in ("/leave", "/login") else {404}
    if method != "POST" or route not in ("/session", "/login", "/leave", "/layout.json"):
        return {405}
    if origin != "same":
        return {403}
    if route == "/layout.json" and session != "steer":
        return {403} if inside else {401}
    if route == "/login":
        return {404}  # there are no accounts
    return {200} if route == "/leave" else {400}  # the body of the matrix is neither a token nor a layout


@pytest.mark.parametrize(("route", "method"), list(product(ROUTES, METHODS)))
def test_everything_is_denied_but_what_is_allowed(
    application: Application, client: TestClient, route: str, method: str
) -> None:
    for host, origin, session in product(HOSTS, ORIGINS, SESSIONS):
        sent = headers(application, host, origin, session)
        answer = client.request(method, route, headers=sent, content=b"[]" if method == "POST" else None)
        right = expected(route, method, host, origin, session)
        assert answer.status_code in right, (host, origin, session, answer.status_code, right)
        assert answer.headers["content-security-policy"] == POLICY
        if answer.status_code not in (200, 304):
            assert b"secret" not in answer.content
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_a_socket_opens_for_the_page_and_a_session_alone(
    application: Application, client: TestClient, host: str, origin: str | None, session: str
) -> None:
    sent = headers(application, host, origin, session)
    sent.pop("content-type")
    allowed = host in OURS and origin == "same" and session in ("read", "steer")
    if not allowed:
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws", headers=sent):
            raise AssertionError("it was opened")  # pragma: no cover
        return
    with client.websocket_connect("/ws", headers=sent) as socket:
        socket.send_json({"id": 1, "do": "set", "pattern": "trainer.optimiser.learning_rate", "value": 0.1})
        answer = socket.receive_json()
    if session == "read":
        assert "not allowed" in answer["error"]["message"]
        assert application.served.view.sent == []  # type: ignore[attr-defined]
    else:
        assert "not allowed" not in str(answer)


def test_a_key_is_exchanged_for_a_cookie_that_no_script_reads(application: Application, client: TestClient) -> None:
    for key, scopes in ((application.keys.steer, ["read", "steer"]), (application.keys.read, ["read"])):
        answer = client.post("/session", json={"token": key}, headers=OWN)
        assert answer.status_code == 200
        known = [{"name": "mine", "title": "Mine", "view": "train"}]
        assert answer.json() == {
            "scopes": scopes,
            "run": "mine",
            "where": "monitor",
            "process": os.getpid(),
            "panels": known,
        }
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/" in cookie
        assert key.lower() not in cookie
        assert client.get("/session").json()["scopes"] == scopes
    assert client.post("/leave", headers=OWN).status_code == 200
    assert client.get("/session").status_code == 401


@pytest.mark.parametrize(
    ("change", "status"),
    [({"x-sigma": "0"}, 403), ({"origin": "http://localhost:8470"}, 403), ({"content-type": "text/plain"}, 415)],
)
def test_a_post_needs_the_header_the_origin_and_the_type(
    application: Application, client: TestClient, change: dict[str, str], status: int
) -> None:
    body = f'{{"token": "{application.keys.steer}"}}'
    assert client.post("/session", content=body, headers={**OWN, **change}).status_code == status


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"token": 1}', b'{"toke": "x"}', b"[" * 60_000, b"\xff", b'{"token": null}']
)
def test_a_body_that_is_no_token_is_refused(client: TestClient, body: bytes) -> None:
    assert client.post("/session", content=body, headers=OWN).status_code == 400


def test_a_body_beyond_the_limit_is_refused(application: Application, client: TestClient) -> None:
    assert client.post("/session", content=b"x" * (MOST_BODY + 1), headers=OWN).status_code == 413
    body = f'{{"token": "{application.keys.steer}", "more": "{"x" * MOST_BODY}"}}'.encode()
    pieces = (body[at : at + 1024] for at in range(0, len(body), 1024))  # their length is not announced
    assert client.post("/session", content=pieces, headers=OWN).status_code >= 400


def test_wrong_keys_are_limited_and_right_ones_too_meanwhile() -> None:
    now = [0.0]
    keys = Keys(attempts=Attempts(lambda: now[0]))
    application = Application(Run(), keys, {}, PageLayout())
    client = TestClient(application.guard_application(), base_url=BASE)
    wrong = [client.post("/session", json={"token": "wrong"}, headers=OWN).status_code for _ in range(TRIES + 5)]
    assert wrong == [401] * TRIES + [429] * 5
    assert client.post("/session", json={"token": keys.steer}, headers=OWN).status_code == 429
    now[0] = 1.5
    assert client.post("/session", json={"token": keys.steer}, headers=OWN).status_code == 200


def test_wrong_keys_of_one_peer_do_not_keep_another_out() -> None:
    application = Application(Run(), Keys(attempts=Attempts(lambda: 0.0)), {}, PageLayout())
    near, far = (
        TestClient(application.guard_application(), base_url=BASE, client=(host, 1))
        for host in ("127.0.0.1", "192.0.2.7")
    )
    tried = [far.post("/session", json={"token": "wrong"}, headers=OWN).status_code for _ in range(12)]
    assert tried == [401] * 10 + [429] * 2
    assert near.post("/session", json={"token": application.keys.steer}, headers=OWN).status_code == 200


def test_peers_that_tried_wrong_keys_are_counted_up_to_a_number() -> None:
    keys = Keys(attempts=Attempts(lambda: 0.0))
    for peer in range(1001):
        for _ in range(10):
            keys.attempts.count_failure(str(peer))
    assert [keys.attempts.may_try(str(peer)) for peer in (0, 1, 1000)] == [True, False, False]


def test_a_client_that_leaves_in_the_middle_of_a_request_raises_nothing(application: Application) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": "127.0.0.1", "origin": "http://127.0.0.1", "content-type": "application/json", "x-sigma": "1"}
    scope = {
        "type": "http", "method": "POST", "path": "/session", "query_string": b"", "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    asyncio.run(application.guard_application()(scope, receive, send))
    assert [one["status"] for one in sent if "status" in one] in ([], [500])


def test_keys_and_cookies_cannot_be_guessed_and_are_of_their_server() -> None:
    many = [Keys() for _ in range(100)]
    found = {key for keys in many for key in (keys.steer, keys.read)}
    assert len(found) == 200
    assert all(len(key) >= 43 for key in found)
    names = {Application(Run(), keys, {}, PageLayout()).cookie for keys in many}
    assert len(names) == 100  # cookies do not know ports


def test_old_sessions_are_forgotten() -> None:
    keys = Keys()
    reads, steers = keys.enter(keys.read), keys.enter(keys.steer)
    for _ in range(200):
        keys.enter(keys.read)
    assert reads is not None
    assert steers is not None
    assert keys.session(reads[0]) == frozenset()
    assert keys.session(steers[0]) == {"read", "steer"}, "those who read do not log out those who steer"


def test_prometheus_has_a_key_of_its_own(application: Application, client: TestClient) -> None:
    application.served.view.values = {"trainer.training.loss": 0.25, "trainer.name": "x"}  # type: ignore[attr-defined]
    assert client.get("/metrics").headers["www-authenticate"] == "Bearer"
    for wrong in ("Bearer wrong", f"Basic {application.keys.read}", application.keys.read, "Bearer"):
        assert client.get("/metrics", headers={"authorization": wrong}).status_code == 401
    for key in (application.keys.read, application.keys.steer):
        assert client.get("/metrics", headers={"authorization": f"Bearer {key}"}).status_code == 200


def test_wrong_keys_of_prometheus_are_limited_with_all_others(application: Application, client: TestClient) -> None:
    application.keys.attempts.clock = lambda: 0.0
    wrong = [client.get("/metrics", headers={"authorization": "Bearer no"}).status_code for _ in range(TRIES + 2)]
    assert wrong == [401] * TRIES + [429] * 2
    assert client.post("/session", json={"token": application.keys.read}, headers=OWN).status_code == 429


@pytest.mark.parametrize("key", ["\ud800", "\0", "x" * 10_000])
def test_a_key_of_any_letters_is_only_wrong(client: TestClient, key: str) -> None:
    assert client.post("/session", content=json.dumps({"token": key}), headers=OWN).status_code == 401


def test_a_body_that_does_not_come_in_time_ends_the_request(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigma_http.guard.LONGEST_BODY", 0.05)
    headers = {"host": "127.0.0.1", "origin": "http://127.0.0.1", "content-type": "application/json", "x-sigma": "1"}
    scope = {
        "type": "http", "method": "POST", "path": "/session", "query_string": b"", "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip

    async def receive() -> Any:
        await asyncio.sleep(100)

    async def send(message: Any) -> None: ...

    asyncio.run(asyncio.wait_for(application.guard_application()(scope, receive, send), 10))


def test_prometheus_waits_for_the_rest_that_its_work_takes_from_all_clients(
    application: Application, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, slept = iter([0.0, 0.02] * 3), list[float]()
    monkeypatch.setattr(application_module, "time", SimpleNamespace(thread_time=lambda: next(clock)))
    application.lines.budget = WorkBudget(rest=4.0, clock=lambda: 100.0)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(application_module, "asyncio", SimpleNamespace(to_thread=asyncio.to_thread, sleep=sleep))
    for _ in range(3):
        key = application.keys.read
        assert client.get("/metrics", headers={"authorization": f"Bearer {key}"}).status_code == 200
    assert slept == pytest.approx([0.08, 0.16, 0.24])


def test_nothing_outside_of_the_page_is_sent(client: TestClient) -> None:
    for path in (
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/page/../../keys.py",
        "/..%2fkeys.py",
        "/app.js%00",
        "/.git/config",
    ):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:8470", "127.0.0.1"), ("LOCALHOST", "localhost"), ("[::1]:1", "[::1]"), ("a.b:80", "a.b"),
        ("127.0.0.1:8470:1", ""), ("127.0.0.1 evil", ""), ("a@b", ""), ("", ""), ("[::1", ""), ("host:123456", ""),
    ],
)  # fmt: skip
def test_a_host_is_read_strictly(host: str, name: str) -> None:
    assert name_of(host) == name


def test_a_named_host_is_let_in_beside_the_loopback(application: Application) -> None:
    client = TestClient(application.guard_application("Train.example"), base_url=BASE)
    assert client.get("/", headers={"host": "train.example:8470"}).status_code == 200
    assert client.get("/", headers={"host": "other.example:8470"}).status_code == 421


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "train.example", "::"])
def test_a_host_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(SigmaConfigError, match="can be reached from other machines. Give a token"):
        WebMonitor(host=host)
    assert WebMonitor(host=host, token="x" * 16).host == host


@pytest.mark.parametrize("token", ["short", "x" * 15, "with blanks in it, which", "ünlesbar" * 3])
def test_a_token_has_to_be_long_and_plain(token: str) -> None:
    with pytest.raises(SigmaConfigError, match="must have at least 16"):
        WebMonitor(token=token)


def test_a_token_stays_out_of_the_representation() -> None:
    assert "x" * 16 not in repr(WebMonitor(token="x" * 16))


def test_a_token_of_the_environment_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = WebMonitor(token="$DASHBOARD", open=False)
    with pytest.raises(SigmaConfigError, match="the environment variable DASHBOARD must have at least 16"):
        monitor.watch(FakeView())
    monkeypatch.setenv("DASHBOARD", "y" * 20)
    view = FakeView()
    view.over.set()
    monitor.watch(view)
    assert "y" * 20 in view.texts[0]
