"""A dashboard that is open to a team: who is let in by a password, by which name, and who is not."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from sigma_http import passwords, serving
from sigma_http.attempts import FREE, GrowingDelays
from sigma_http.passwords import PasswordHash, hash_password
from sigma_http.serving import listening
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.budget import WorkBudget
from sigma_monitor_control.protocol import Conversation
from sigma_monitor_web import accounts as accounts_module
from sigma_monitor_web.accounts import Account, Accounts, parse_accounts, read_accounts, write_accounts
from sigma_monitor_web.application import Application
from sigma_monitor_web.exposition import expose_view
from sigma_monitor_web.files import file
from sigma_monitor_web.keys import Keys
from sigma_monitor_web.layout import PageLayout
from sigma_monitor_web.monitor import WebMonitor
from sigma_monitor_web.password import password
from sigma_monitor_web.reach import ServerReach
from sigma_monitor_web.serving import WebServer
from sigma_testing import FakeView

BASE = "http://127.0.0.1:8470"
OWN = {"x-sigma": "1", "origin": BASE, "content-type": "application/json"}
WORDS = {"anna": "correct horse battery", "ben": "staple of the reader"}


class Run:
    """A run that is served."""

    def __init__(self) -> None:
        self.view, self.name, self.where = FakeView(), "mine", "monitor"

    def talk(self, run: str, scopes: frozenset[str], who: str) -> Any:
        return Conversation(self.view, scopes, who=who)

    def metrics(self) -> tuple[bytes, str]:
        return expose_view(self.view)


@pytest.fixture(scope="module", autouse=True)
def _quickly() -> Iterator[None]:
    """Hash passwords at a low cost: the tests of sigma-http check one of the usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "COST", 16)
        yield


@pytest.fixture(scope="module")
def hashes(_quickly: None) -> dict[str, PasswordHash]:
    return {name: hash_password(word) for name, word in WORDS.items()}


@pytest.fixture
def people(tmp_path: Path, hashes: dict[str, PasswordHash]) -> Path:
    """Return a file of two people: one may steer, one may read."""
    path = tmp_path / "people"
    scopes = {"anna": "steer", "ben": "read"}
    write_accounts(path, {name: Account(name, scopes[name], hashes[name]) for name in scopes})
    return path


def application(people: Path, **more: Any) -> Application:
    files = {"index.html": file(b"<!doctype html>", ".html")}
    return Application(Run(), Keys(accounts=Accounts(people), **more), files, PageLayout())


def window(made: Application, base: str = BASE, **more: Any) -> TestClient:
    return TestClient(made.guard_application(), base_url=base, **more)


@pytest.fixture
def client(people: Path) -> TestClient:
    return window(application(people))


def socket_headers(client: TestClient) -> dict[str, str]:
    """Return what a browser sends when it opens the socket; the client of tests has another name for it."""
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)
    return {"origin": BASE, "host": "127.0.0.1:8470", "cookie": cookies}


def log_in(client: TestClient, name: str, word: str) -> Any:
    return client.post("/login", json={"name": name, "password": word}, headers=OWN)


# -- passwords ---------------------------------------------------------------------------------------------------------
def test_a_person_comes_in_by_name_and_password_and_leaves(client: TestClient) -> None:
    asked = client.get("/session")
    assert (asked.status_code, asked.json()["login"]) == (401, True)
    answer = log_in(client, "anna", WORDS["anna"])
    assert (answer.status_code, answer.json()["scopes"], answer.json()["person"]) == (200, ["read", "steer"], "anna")
    cookie = answer.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/"))
    assert "secure" not in cookie
    assert WORDS["anna"] not in str(answer.headers) + answer.text
    assert client.get("/session").json()["person"] == "anna"
    assert client.post("/leave", headers=OWN).status_code == 200
    assert client.get("/session").status_code == 401


@pytest.mark.parametrize(
    ("name", "word"), [("anna", WORDS["ben"]), ("nobody", WORDS["anna"]), ("anna", ""), ("", ""), ("anna", "x" * 5000)]
)
def test_a_wrong_name_and_a_wrong_password_are_refused_alike(client: TestClient, name: str, word: str) -> None:
    answer = log_in(client, name, word)
    assert answer.status_code == 401
    assert answer.json()["error"] == "the name or the password is wrong."
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("body", ["[]", "{}", '{"name": "anna"}', '{"name": 1, "password": "x"}', "no", "[" * 60_000])
def test_a_body_that_is_no_name_with_a_password_is_refused(client: TestClient, body: str) -> None:
    assert client.post("/login", content=body, headers=OWN).status_code == 400


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"x-sigma": "0"}, 403), ({"origin": "http://evil.example"}, 403), ({"origin": "http://localhost:8470"}, 403),
        ({"content-type": "text/plain"}, 415), ({"host": "evil.example"}, 421),
    ],
)  # fmt: skip
def test_another_site_cannot_log_anybody_in(client: TestClient, change: dict[str, str], status: int) -> None:
    body = json.dumps({"name": "anna", "password": WORDS["anna"]})
    assert client.post("/login", content=body, headers={**OWN, **change}).status_code == status
    assert client.get("/login").status_code == 405


def test_without_accounts_nobody_logs_in() -> None:
    client = window(Application(Run(), Keys(), {}, PageLayout()))
    assert log_in(client, "anna", WORDS["anna"]).status_code == 404
    assert "login" not in client.get("/session").json()


def test_each_wrong_password_delays_the_next_one_and_the_right_one_too(people: Path) -> None:
    now = [100.0]
    client = window(application(people, delays=GrowingDelays(lambda: now[0])))
    assert [log_in(client, "anna", "wrong").status_code for _ in range(FREE)] == [401] * FREE
    late = log_in(client, "anna", WORDS["anna"])
    assert (late.status_code, late.headers["retry-after"]) == (429, "1")
    now[0] += 1.0
    assert log_in(client, "ben", "wrong").status_code == 401
    assert log_in(client, "ben", "wrong").headers["retry-after"] == "2"
    now[0] += 2.0
    assert log_in(client, "anna", WORDS["anna"]).status_code == 200
    assert log_in(client, "anna", "wrong").status_code == 401  # and begins anew


def test_a_right_password_of_one_name_leaves_the_wrong_ones_of_others_counted(people: Path) -> None:
    client = window(application(people, delays=GrowingDelays(lambda: 100.0)))
    tries = [log_in(client, "anna", "wrong").status_code for _ in range(2)]
    tries.append(log_in(client, "ben", WORDS["ben"]).status_code)
    tries += [log_in(client, "anna", "wrong").status_code for _ in range(2)]
    assert tries == [401, 401, 200, 401, 429]


def test_passwords_that_are_tried_at_once_are_checked_one_after_another(people: Path) -> None:
    made = application(people)
    body = json.dumps({"name": "anna", "password": "wrong"}).encode()
    headers = {**OWN, "host": "127.0.0.1:8470"}

    async def ask() -> int:
        sent = list[Any]()
        scope = {
            "type": "http", "method": "POST", "path": "/login", "query_string": b"", "client": ("192.0.2.7", 1),
            "scheme": "http", "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await made.guard_application()(scope, receive, send)
        return int(sent[0]["status"])

    async def ask_all() -> list[int]:
        return await asyncio.gather(*(ask() for _ in range(FREE + 5)))

    assert sorted(asyncio.run(ask_all())) == [401] * FREE + [429] * 5


def test_peers_are_told_apart_by_their_network(people: Path) -> None:
    made = application(people)
    near, far = "2001:db8::1", "2001:db8:1::1"
    for _ in range(FREE):
        assert log_in(window(made, client=(near, 1)), "anna", "wrong").status_code == 401
    assert log_in(window(made, client=("2001:db8::2", 1)), "anna", "wrong").status_code == 429
    assert log_in(window(made, client=(far, 1)), "anna", WORDS["anna"]).status_code == 200


# -- what people may do ------------------------------------------------------------------------------------------------
def test_what_a_person_sets_has_their_name_whatever_the_page_says(people: Path) -> None:
    made = application(people)
    view: FakeView = made.served.view  # type: ignore[attr-defined]
    view.values["trainer.optimiser.learning_rate"] = 0.1
    client = window(made)
    log_in(client, "anna", WORDS["anna"])
    with client.websocket_connect("/ws", headers=socket_headers(client)) as socket:
        for who in (None, "ben"):
            told = {} if who is None else {"who": who}
            socket.send_json({"id": 1, "do": "command", "name": "pause", **told})
            socket.receive_json()
    assert [ticket.arguments["who"] for ticket in view.sent] == ["anna", "anna"]


def test_who_has_the_key_of_a_link_cannot_take_a_name(people: Path) -> None:
    made = application(people)
    client = window(made)
    assert client.post("/session", json={"token": made.keys.steer}, headers=OWN).status_code == 200
    with client.websocket_connect("/ws", headers=socket_headers(client)) as socket:
        socket.send_json({"id": 1, "do": "command", "name": "pause", "who": "anna"})
        socket.receive_json()
    (ticket,) = made.served.view.sent  # type: ignore[attr-defined]
    assert "who" not in ticket.arguments


def test_a_reader_watches_and_steers_nothing(people: Path) -> None:
    made = application(people)
    client = window(made)
    assert log_in(client, "ben", WORDS["ben"]).json()["scopes"] == ["read"]
    with client.websocket_connect("/ws", headers=socket_headers(client)) as socket:
        socket.send_json({"id": 1, "do": "command", "name": "stop"})
        assert "not allowed here" in socket.receive_json()["error"]["message"]
        socket.send_json({"id": 2, "do": "hello"})
        assert socket.receive_json()["result"]["scopes"] == ["read"]
    assert client.post("/layout.json", json={"format": 1, "tabs": []}, headers=OWN).status_code == 403
    assert client.get("/link").status_code == 403


def test_a_link_that_only_reads_is_given_to_those_who_steer(people: Path) -> None:
    made = application(people)
    client, other = window(made), window(made)
    assert client.get("/link").status_code == 401
    log_in(client, "anna", WORDS["anna"])
    token = client.get("/link").json()["token"]
    assert token == made.keys.read != made.keys.steer
    assert other.post("/session", json={"token": token}, headers=OWN).json()["scopes"] == ["read"]
    assert other.get("/link").status_code == 403


def test_who_is_removed_or_has_a_new_password_is_out(people: Path, hashes: dict[str, PasswordHash]) -> None:
    client = window(application(people))
    log_in(client, "anna", WORDS["anna"])
    found = read_accounts(people)
    write_accounts(people, {"ben": found["ben"]})
    assert client.get("/session").status_code == 401
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws", headers=socket_headers(client)):
        raise AssertionError("it was opened")  # pragma: no cover
    assert log_in(client, "anna", WORDS["anna"]).status_code == 401
    write_accounts(people, {"anna": Account("anna", "read", hashes["anna"])})
    assert log_in(client, "anna", WORDS["anna"]).json()["scopes"] == ["read"]


def test_an_open_socket_ends_when_its_person_is_removed(people: Path, hashes: dict[str, PasswordHash]) -> None:
    client = window(application(people))
    log_in(client, "anna", WORDS["anna"])
    with client.websocket_connect("/ws", headers=socket_headers(client)) as socket:
        socket.send_json({"id": 1, "do": "hello"})
        assert socket.receive_json()["result"]["scopes"] == ["read", "steer"]
        write_accounts(people, {"ben": Account("ben", "read", hashes["ben"])})
        socket.send_json({"id": 2, "do": "pause"})
        with pytest.raises(WebSocketDisconnect) as ended:
            socket.receive_json()
    assert ended.value.code == 4401


def test_a_socket_ends_when_its_page_logs_out_while_it_only_watches(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigma_monitor_web.talk.LOOK", 0.0)
    client = window(made := application(people))
    made.lines.budget = WorkBudget(rest=0.0)
    log_in(client, "ben", WORDS["ben"])
    with client.websocket_connect("/ws", headers=socket_headers(client)) as socket:
        socket.send_json({"id": 1, "do": "follow"})
        assert "event" in socket.receive_json()
        assert client.post("/leave", headers=OWN).status_code == 200
        with pytest.raises(WebSocketDisconnect) as ended:
            socket.receive_json()
    assert ended.value.code == 4401


def test_messages_hide_the_key_of_the_link_from_those_who_read(people: Path) -> None:
    made = application(people)
    made.served.view.log(f"dashboard: {BASE}/#token={made.keys.steer}")  # type: ignore[attr-defined]
    client = window(made)
    log_in(client, "ben", WORDS["ben"])
    with client.websocket_connect("/ws", headers=socket_headers(client)) as socket:
        socket.send_json({"id": 1, "do": "messages"})
        answer = socket.receive_text()
    assert "#token=..." in answer
    assert made.keys.steer not in answer


def test_nobody_comes_in_while_the_file_is_gone_or_damaged(people: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = window(application(people))
    log_in(client, "anna", WORDS["anna"])
    text = people.read_text()
    people.write_text(text + "more\n")
    assert client.get("/session").status_code == 401
    assert log_in(client, "anna", WORDS["anna"]).status_code == 503
    people.unlink()
    assert log_in(client, "anna", WORDS["anna"]).status_code == 503
    write_accounts(people, parse_accounts(text, "people"))
    assert client.get("/session").status_code == 200, "sessions go on"
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["nobody can log in"] * 2


# -- the file ----------------------------------------------------------------------------------------------------------
def test_sigma_password_writes_hashes_that_others_cannot_read(tmp_path: Path) -> None:
    path, runner = tmp_path / "people", CliRunner()
    typed = "a few words of mine"
    for name, more in (("anna", []), ("ben", ["--read-only"])):
        done = runner.invoke(password, [str(path), name, *more], input=f"{typed}\n{typed}\n")
        assert done.exit_code == 0, done.output
        assert typed not in done.output
    assert path.stat().st_mode & 0o777 == 0o600
    assert typed not in path.read_text()
    found = read_accounts(path)
    assert {name: account.scope for name, account in found.items()} == {"anna": "steer", "ben": "read"}
    assert found["anna"].hash.matches(typed)
    assert runner.invoke(password, [str(path), "anna", "--remove"]).exit_code == 0
    assert list(read_accounts(path)) == ["ben"]


@pytest.mark.parametrize(
    ("arguments", "typed", "text"),
    [
        (["people", "a b"], "", "is not an account name"),
        (["people", "anna"], "too short", "must have 12 to 1,024 characters"),
        (["people", "anna", "--remove"], "", "has no account 'anna'. It has none"),
        (["nowhere/people", "anna"], "a few words of mine", "nowhere/people: cannot be written: No such file"),
    ],
)
def test_what_sigma_password_cannot_do_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], typed: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(password, arguments, input=f"{typed}\n{typed}\n")
    assert isinstance(done.exception, SigmaConfigError)
    assert text in str(done.exception)
    assert not Path("people").exists()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("anna", "must be a name, read or steer, and a hash"),
        ("anna own {hash}", "must be a name, read or steer, and a hash"),
        ("an/na read {hash}", "is not an account name"),
        ("anna read plain", "is not a hash of a password"),
        ("ben read {hash}", "ben has a line already"),
    ],
)
def test_a_line_that_is_no_account_is_refused(hashes: dict[str, PasswordHash], line: str, text: str) -> None:
    word = hashes["ben"].to_text()
    with pytest.raises(SigmaConfigError, match=rf"^file:4: .*{text}"):
        parse_accounts(f"# people\n\nben read {word}\n{line.format(hash=word)}\n", "file")


def test_a_file_that_others_can_open_or_that_is_none_is_refused(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people.chmod(0o640)
    with pytest.raises(SigmaConfigError, match="other users can open it"):
        read_accounts(people)
    with pytest.raises(SigmaConfigError, match="cannot be read: No such file"):
        read_accounts(people.with_name("nothing"))
    people.chmod(0o600)
    people.write_bytes(b"\xff")
    with pytest.raises(SigmaConfigError, match="is not UTF-8 text"):
        read_accounts(people)
    monkeypatch.setattr(accounts_module, "MOST", 3)
    people.write_bytes(b"# long")
    with pytest.raises(SigmaConfigError, match="is longer than 3 bytes"):
        read_accounts(people)


# -- settings ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"host": "0.0.0.0", "accounts": "people"}, "passwords would travel to '0.0.0.0' unencrypted"),
        ({"certificate": "a.pem"}, "TLS needs both files"),
        ({"key": "a.pem"}, "TLS needs both files"),
        ({"certificate": "a.pem", "key": "b.pem"}, "certificate: a.pem: there is no such file"),
        ({"names": ["https://train.example"]}, "is not a host name"),
        ({"names": ["train.example:80"]}, "is not a host name"),
        ({"proxy": ["nginx"]}, "is not an address"),
        ({"base": "sigma"}, "is not a path"),
        ({"base": "/sigma/"}, "is not a path"),
        ({"read_token": "short"}, "read_token: must have at least 16"),
    ],
)
def test_settings_that_let_in_too_many_or_cannot_be_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(SigmaConfigError, match=text):
        WebMonitor(**settings)


def test_keys_and_accounts_are_those_of_the_settings(people: Path, tmp_path: Path) -> None:
    made = WebMonitor(token="t" * 16, read_token="r" * 16).make_keys()
    assert (made.steer, made.read, made.accounts) == ("t" * 16, "r" * 16, None)
    with pytest.raises(SigmaConfigError, match="is the token that steers"):
        WebMonitor(token="t" * 16, read_token="t" * 16).make_keys()
    (tmp_path / "empty").touch(0o600)
    with pytest.raises(SigmaConfigError, match="has no account. `sigma password"):
        WebMonitor(accounts=str(tmp_path / "empty")).make_keys()
    assert WebMonitor(host="0.0.0.0", accounts=str(people), proxy=["10.0.0.1"]).make_keys().accounts is not None


def test_files_that_are_no_pair_are_refused(tmp_path: Path) -> None:
    for name in ("certificate", "key"):
        (tmp_path / name).write_text("nothing")
    with pytest.raises(SigmaConfigError, match="are no certificate with its private key"):
        ServerReach(certificate=str(tmp_path / "certificate"), key=str(tmp_path / "key")).check("Some")


# -- names, TLS, a proxy -----------------------------------------------------------------------------------------------
def test_the_names_that_are_configured_are_let_in_and_no_others(people: Path) -> None:
    made = application(people)
    client = TestClient(made.guard_application("", ["Train.example"]), base_url=BASE)
    for host, status in (
        ("train.example", 200),
        ("train.example:8470", 200),
        ("localhost", 200),
        ("evil.example", 421),
    ):
        assert client.get("/", headers={"host": host}).status_code == status


def test_a_cookie_is_secure_where_the_page_came_encrypted_and_stays_below_the_path(people: Path) -> None:
    made = Application(Run(), Keys(accounts=Accounts(people)), {}, PageLayout(), base="/sigma")
    client = TestClient(made.guard_application(), base_url="https://127.0.0.1")
    body = {"name": "anna", "password": WORDS["anna"]}
    headers = {**OWN, "origin": "https://127.0.0.1"}
    cookie = client.post("/sigma/login", json=body, headers=headers).headers["set-cookie"].lower()
    assert "secure" in cookie
    assert "path=/sigma/" in cookie


def test_a_link_has_no_key_where_people_log_in(people: Path) -> None:
    made = application(people)
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        link = WebServer(made, listener, "127.0.0.1", ServerReach(certificate="c", key="k", base="/sigma")).link()
        assert link == f"https://127.0.0.1:{port}/sigma/"
        keyed = Application(Run(), Keys(), {}, PageLayout())
        assert WebServer(keyed, listener, "127.0.0.1").link() == f"http://127.0.0.1:{port}/#token={keyed.keys.steer}"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the files of a certificate and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def serve(made: Application, reach: ServerReach) -> tuple[int, threading.Event, threading.Thread]:
    """Serve in a thread until the event is set."""
    over, listener = threading.Event(), listening("127.0.0.1", 0)
    server = WebServer(made, listener, "127.0.0.1", reach)
    thread = threading.Thread(target=server.run, args=(over.wait,), daemon=True)
    thread.start()
    return server.port, over, thread


def test_a_server_with_a_certificate_speaks_tls_alone(people: Path, pair: tuple[str, str]) -> None:
    reach = ServerReach(certificate=pair[0], key=pair[1])
    reach.check("Some")
    port, over, thread = serve(application(people), reach)
    try:
        trusted = ssl.create_default_context(cafile=pair[0])
        line = HTTPSConnection("localhost", port, timeout=30, context=trusted)
        headers = {**OWN, "origin": f"https://localhost:{port}"}
        line.request("POST", "/login", json.dumps({"name": "anna", "password": WORDS["anna"]}), headers)
        answer = line.getresponse()
        assert answer.status == 200
        assert "secure" in str(answer.headers["set-cookie"]).lower()
        answer.read()
        line.request("POST", "/login", "{}", {**headers, "origin": f"http://localhost:{port}"})
        assert line.getresponse().status == 403
        line.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            HTTPSConnection("localhost", port, timeout=30, context=ssl.create_default_context()).request("GET", "/")
    finally:
        over.set()
        thread.join(30)


def test_a_client_that_is_silent_in_its_tls_handshake_is_dropped_and_holds_up_nobody(
    people: Path, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HANDSHAKE", 2.0)
    port, over, thread = serve(application(people), ServerReach(certificate=pair[0], key=pair[1]))
    try:
        silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(20)]
        line = HTTPSConnection("localhost", port, timeout=30, context=ssl.create_default_context(cafile=pair[0]))
        line.request("GET", "/")
        assert line.getresponse().status == 200
        began = time.monotonic()
        for one in silent:
            assert one.recv(1) == b"", "it is closed"
            one.close()
        assert time.monotonic() - began < 20  # asyncio has 60
        line.close()
    finally:
        over.set()
        thread.join(30)


def test_a_client_begins_few_tls_handshakes_at_once(people: Path, pair: tuple[str, str]) -> None:
    port, over, thread = serve(application(people), ServerReach(certificate=pair[0], key=pair[1]))
    try:
        with ExitStack() as sockets:
            lines = [socket.create_connection(("127.0.0.1", port), 30, ("127.0.0.2", 0)) for _ in range(70)]
            for line in lines:
                sockets.callback(line.close)
            context = ssl.create_default_context(cafile=pair[0])
            other = HTTPSConnection("localhost", port, timeout=30, context=context)
            other.request("GET", "/")
            assert other.getresponse().status == 200
            other.close()
            lines[-1].settimeout(5.0)  # a handshake is waited for longer
            with suppress(ConnectionResetError):
                assert lines[-1].recv(1) == b"", "it is refused at once"
            lines[0].settimeout(0.2)
            with pytest.raises(TimeoutError):
                lines[0].recv(1)
    finally:
        over.set()
        thread.join(30)


@pytest.mark.parametrize(("proxy", "told"), [((), 429), (("127.0.0.1",), 401)])
def test_forwarded_addresses_count_only_from_the_proxy_that_is_configured(
    people: Path, proxy: tuple[str, ...], told: int
) -> None:
    port, over, thread = serve(application(people), ServerReach(proxy=proxy))
    try:
        statuses = []
        for attempt in range(FREE + 1):
            line = HTTPConnection("127.0.0.1", port, timeout=30)
            headers = {**OWN, "origin": f"http://127.0.0.1:{port}", "x-forwarded-for": f"192.0.2.{attempt}"}
            line.request("POST", "/login", json.dumps({"name": "anna", "password": "wrong"}), headers)
            statuses.append(line.getresponse().status)
            line.close()
        assert statuses == [401] * FREE + [told]
        line = HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {
            **OWN,
            "origin": f"https://127.0.0.1:{port}",
            "x-forwarded-proto": "https",
            "x-forwarded-for": "192.0.2.99",
        }
        line.request("POST", "/login", json.dumps({"name": "ben", "password": WORDS["ben"]}), headers)
        answer = line.getresponse()
        assert answer.status == (200 if proxy else 429)
        assert ("secure" in str(answer.headers["set-cookie"]).lower()) is bool(proxy)
        line.close()
    finally:
        over.set()
        thread.join(30)


def test_a_secret_stays_out_of_representations() -> None:
    made = WebMonitor(token="t" * 16, read_token="r" * 16)
    assert "t" * 16 not in repr(made)
    assert "r" * 16 not in repr(made)
