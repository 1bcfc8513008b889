"""People outside are told of the end, of a failure and of a plateau; a delivery that fails is a message."""

from __future__ import annotations

import asyncio
import base64
import json
import smtplib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_hooks import Email, Evaluate, Plateau, Webhook
from sigma_hooks.notification import EVENTS, Announcement, read_secret
from sigma_kernel import Environment, Moment, SigmaConfigError, every, when
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaTrainingError
from sigma_run import from_file
from sigma_testing import Desk, HookSuite, Sweep, small_environment

SECRET = "s3cr3t-" + "x" * 20


@define(eq=False)
class Sink:
    """A webhook: what it was sent, and the status that it answers."""

    status: int = 200
    sent: list[tuple[str, dict[str, Any]]] = field(factory=list)
    link: str = ""


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sink]:
    """Return a webhook on this machine, whose address is in the environment."""
    made = Sink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/json"
            made.sent.append((self.path, json.loads(body)))
            self.send_response(made.status)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.link = f"http://127.0.0.1:{server.server_address[1]}/{SECRET}"
        monkeypatch.setenv("SINK", made.link)
        yield made
        server.shutdown()


@define(eq=False)
class Post:
    """A server of SMTP: what it was sent, what it refuses, and who logged in."""

    port: int = 0
    refuses: bytes = b""
    offers: bytes = b"AUTH PLAIN"
    sent: list[bytes] = field(factory=list)
    logins: list[bytes] = field(factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak the few commands of RFC 5321 and RFC 4954 that a client sends."""
        writer.write(b"220 here\r\n")
        while line := (await reader.readline()).strip():
            word = line[:4].upper()
            if word == b"DATA":
                writer.write(b"354 go on\r\n")
                self.sent.append(await reader.readuntil(b"\r\n.\r\n"))
                writer.write(b"250 taken\r\n")
            elif word == b"EHLO":
                writer.write(b"250-here\r\n250 " + self.offers + b"\r\n")
            elif word == b"AUTH":
                self.logins.append(line)
                writer.write(b"535 no\r\n" if self.refuses == b"AUTH" else b"235 in\r\n")
            elif word == b"QUIT":
                writer.write(b"221 bye\r\n")
                break
            else:
                writer.write(b"550 no\r\n" if self.refuses == word else b"250 ok\r\n")
        await writer.drain()
        writer.close()


@pytest.fixture
def post() -> Iterator[Post]:
    """Return a server of e-mail on this machine."""
    made, ready, over = Post(), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as server:
            made.port = server.sockets[0].getsockname()[1]
            ready.set()
            await over.wait()

    def run() -> None:
        with closing(loop):
            loop.run_until_complete(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(30)
    yield made
    loop.call_soon_threadsafe(over.set)
    thread.join(30)


def mail(post: Post, **more: Any) -> Email:
    settings = {"to": ["anna@example.org"], "sender": "sigma@example.org", "security": "none"}
    return Email(**{**settings, "server": "127.0.0.1", "port": post.port, **more})


class TestWebhook(HookSuite):
    @pytest.fixture(autouse=True)
    def _sink(self, sink: Sink) -> None:
        pass

    def make(self) -> Hook:
        return Webhook("$SINK", when=when("epoch").reaches(1))


class TestEmail(HookSuite):
    def make(self) -> Hook:
        return Email(to=["anna@example.org"], sender="sigma@example.org", server="127.0.0.1", port=1, security="none")


def texts(sigma: Environment) -> list[str]:
    return [text for _, text in sigma.messages.entries_after(0)]


# -- what is told ------------------------------------------------------------------------------------------------------
def test_the_end_is_posted_with_the_values_and_in_words(sink: Sink) -> None:
    with small_environment(Sweep(), hooks={"tell": Webhook("$SINK", values=["training.loss"])}, epochs=2) as sigma:
        sigma.run()
        loss = sigma.get("trainer.training.loss")
    ((path, told),) = sink.sent
    assert path == f"/{SECRET}"
    assert (told["event"], told["epoch"], told["iteration"], told["why"]) == ("end", 2, 10, "")
    assert told["values"] == {"training.loss": pytest.approx(float(loss))}
    assert told["text"].startswith("run: training has ended, at epoch 2, iteration 10. training.loss ")
    assert told.keys() == {"text", "event", "run", "epoch", "iteration", "values", "why"}


@define(eq=False, kw_only=True)
class Break(Hook):
    """Fail in the second epoch."""

    every: Any = every(2, "epoch")

    def fire(self, context: HookContext) -> None:
        """Fail."""
        raise SigmaTrainingError("the data are gone. Mount them.")


def test_a_failure_is_posted_with_its_reason(sink: Sink) -> None:
    hooks = {"tell": Webhook("$SINK"), "break": Break()}
    with small_environment(Sweep(), hooks=hooks, epochs=5) as sigma, pytest.raises(SigmaTrainingError):
        sigma.run()
    ((_, told),) = sink.sent
    assert (told["event"], told["epoch"]) == ("failure", 2)
    assert "the data are gone. Mount them." in told["why"]
    assert "the data are gone" in told["text"]


def test_a_plateau_is_told_once_when_it_begins_and_again_after_it_has_ended(sink: Sink) -> None:
    hook, desk = Webhook("$SINK", when=when("epoch").reaches(1), on=["plateau"]), Desk()
    for epoch in (3, 4, 5, 9, 10):
        desk.moment = Moment(iteration=epoch * 10, epoch=epoch)
        hook.fire(desk)
    hook.at_end(desk)
    assert [(told["event"], told["epoch"]) for _, told in sink.sent] == [("plateau", 3), ("plateau", 9)]
    assert "epoch reaches 1 holds" in sink.sent[0][1]["why"]


def test_a_plateau_of_a_value_is_told_by_the_criterion_of_that_name(sink: Sink) -> None:
    settled = Plateau("validation.loss", window=3, tolerance=1e9)
    hooks = {"tell": Webhook("$SINK", when=settled, on=["plateau"], values=[])}
    with small_environment(Sweep(), hooks={"evaluate": Evaluate(), **hooks}, epochs=6) as sigma:
        sigma.run()
    assert [(told["event"], told["epoch"]) for _, told in sink.sent] == [("plateau", 3)]


def test_the_events_that_are_not_asked_for_are_not_told(sink: Sink) -> None:
    hook, desk = Webhook("$SINK", when=when("epoch").reaches(1), on=["failure"]), Desk()
    hook.fire(desk)
    hook.at_end(desk)
    assert sink.sent == []
    hook.at_failure(desk, "why")
    assert len(sink.sent) == 1
    Webhook("$SINK").fire(desk)  # without a criterion nothing settles
    assert len(sink.sent) == 1


def test_numbers_that_json_does_not_have_are_null() -> None:
    notice = Announcement(
        "end", "r", 1, 2, {"a": np.float32(0.5), "b": float("nan"), "c": np.ones(3), "d": "x", "e": True}
    )
    assert notice.to_json()["values"] == {"a": 0.5, "b": None, "c": None, "d": "x", "e": True}
    json.dumps(notice.to_json(), allow_nan=False)


def test_an_e_mail_names_the_run_and_what_happened(post: Post, tmp_path: Path) -> None:
    (tmp_path / "word").write_text(f"{SECRET}\n")
    hook, desk = (
        mail(post, to=["a@example.org", "b@example.org"], user="sigma", password=str(tmp_path / "word")),
        Desk(),
    )
    desk.folder, desk.values["training.loss"], desk.moment = Path("runs/digits-1"), 0.25, Moment(iteration=5, epoch=1)
    hook.at_failure(desk, "the loss is nan.\nLower the rate.")
    assert desk.logged == []
    (sent,) = map(message_from_bytes, post.sent)
    assert (sent["Subject"], sent["From"]) == ("digits-1: training has failed", "sigma@example.org")
    assert sent["To"] == "a@example.org, b@example.org"
    text = sent.get_payload(decode=True).decode()
    assert "at epoch 1, iteration 5" in text
    assert "Lower the rate" in text
    assert "training.loss 0.25" in text
    assert base64.b64decode(post.logins[0].split()[-1]) == f"\0sigma\0{SECRET}".encode()


# -- a delivery that fails ---------------------------------------------------------------------------------------------
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("status", "text"),
    [(500, "the server answered 500"), (404, "the server answered 404"), (302, "the server answered 302")],
)
def test_what_a_server_refuses_is_a_sentence_without_its_address(sink: Sink, status: int, text: str) -> None:
    sink.status = status
    with small_environment(Sweep(), hooks={"tell": Webhook("$SINK")}, epochs=2) as sigma:
        summary = sigma.run()
    (told,) = (one for one in texts(sigma) if "Webhook" in one)
    assert told == f"Webhook: end was not told: {text}. Training is not affected."
    assert summary.status == "finished"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "the environment variable SINK is empty or missing"),
        ("ftp://example.org/x", "what $SINK holds is not an address that begins with https://"),
        ("http://[x", "what $SINK holds is not an address"),
        ("http://127.0.0.1:{port}/" + SECRET, "Connection refused"),
        (f"https://example.org:{SECRET}/", "InvalidURL"),
        (
            f"https://example.org/{SECRET} # mine",
            "what $SINK holds has spaces or control characters, which no address has",
        ),
        (
            f"https://example.org/\x07{SECRET}",
            "what $SINK holds has spaces or control characters, which no address has",
        ),
    ],
)
def test_what_cannot_be_sent_is_a_sentence(monkeypatch: pytest.MonkeyPatch, value: str, text: str) -> None:
    monkeypatch.setenv("SINK", value.format(port=free_port()))
    desk = Desk()
    Webhook("$SINK").at_end(desk)
    assert desk.logged == [f"Webhook: end was not told: {text}. Training is not affected."]


@pytest.mark.parametrize(
    ("refuses", "more", "text"),
    [
        (b"AUTH", {"user": "sigma", "password": "$WORD"}, "127.0.0.1 does not accept the user and the password"),
        (b"RCPT", {}, "127.0.0.1 refuses anna@example.org"),
        (b"MAIL", {}, "127.0.0.1 answered 550"),
        (b"", {"port": 1}, "Connection refused"),
        (
            b"",
            {"password": "./nothing", "user": "sigma"},
            "the file ./nothing cannot be read: No such file or directory",
        ),
    ],
)
def test_an_e_mail_that_is_not_sent_is_a_sentence(
    post: Post, monkeypatch: pytest.MonkeyPatch, refuses: bytes, more: dict[str, Any], text: str
) -> None:
    monkeypatch.setenv("WORD", SECRET)
    post.refuses = refuses
    desk = Desk()
    mail(post, **more).at_end(desk)
    assert desk.logged == [f"Email: end was not told: {text}. Training is not affected."]
    assert post.sent == []


@pytest.mark.parametrize(
    ("offers", "more", "text"),
    [
        (b"AUTH PLAIN", {"security": "starttls"}, "does not offer encryption by 'starttls'. Choose another port"),
        (b"HELP", {"user": "sigma", "password": "$WORD"}, "does not offer to log in. Choose another port"),
        (
            b"AUTH NTLM",
            {"user": "sigma", "password": "$WORD"},
            "offers no way to log in with a password. Choose another",
        ),
        (b"HELP", {"to": ["jäne@example.org"]}, "does not offer addresses beyond ASCII. Choose another port"),
    ],
)
def test_what_a_server_of_e_mail_does_not_offer_is_a_sentence_with_a_remedy(
    post: Post, monkeypatch: pytest.MonkeyPatch, offers: bytes, more: dict[str, Any], text: str
) -> None:
    monkeypatch.setenv("WORD", SECRET)
    post.offers, desk = offers, Desk()
    hook = mail(post, **more)
    hook.at_end(desk)
    assert desk.logged[0].startswith(f"Email: end was not told: 127.0.0.1 {text}")
    assert "ended the connection. Check the port" in hook.describe(smtplib.SMTPServerDisconnected("gone"))
    assert (post.sent, post.logins) == ([], [])


def test_a_server_that_does_not_answer_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_hooks.webhook.PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("SINK", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        desk = Desk()
        Webhook("$SINK").at_end(desk)
    assert desk.logged == ["Webhook: end was not told: the server did not answer within 8 s. Training is not affected."]


# -- secrets and replays -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Webhook("https://hooks.example.org/secret"), "settings are written to the run folder"),
        (lambda: Webhook("$NOT A NAME"), "is not the name of an environment variable"),
        (lambda: Webhook("$SINK", on=["begin"]), "must be some of end, failure, plateau"),
        (lambda: Webhook("$SINK", on=[]), "must be some of end, failure, plateau"),
        (
            lambda: Email(to=["a@b"], sender="a@b", server="s", password="word"),
            "settings are written to the run folder",
        ),
        (lambda: Email(to=[], sender="a@b", server="s"), "must be a list of addresses"),
        (lambda: Email(to=["a"], sender="a@b", server="s"), "is not an e-mail address"),
        (lambda: Email(to=["a@b"], sender="a@b\nBcc: c@d", server="s"), "is not an e-mail address"),
        (lambda: Email(to=["a@b"], sender="a@b", server="s", security="some"), "security"),
        (
            lambda: Email(to=["a@b"], sender="a@b", server="mail.example.org", security="none", user="a"),
            "Email.user: 'mail.example.org' would be sent the password unencrypted. Choose security",
        ),
    ],
)
def test_settings_that_hold_a_secret_or_mean_nothing_are_refused(make: Any, text: str) -> None:
    with pytest.raises(SigmaConfigError, match=text):
        make()


def test_a_secret_is_of_the_environment_or_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", f" {SECRET}\n")
    (tmp_path / "word").write_text(f"{SECRET}\n")
    assert read_secret("$WORD") == read_secret(str(tmp_path / "word")) == SECRET
    (tmp_path / "word").write_text(f"\n{SECRET} \r\nuser: anna\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_secret("~/word") == SECRET
    (tmp_path / "word").write_text("\n")
    with pytest.raises(SigmaConfigError, match="is empty or missing"):
        read_secret(str(tmp_path / "word"))
    assert EVENTS == ("end", "failure", "plateau")


@pytest.mark.parametrize("server", ["localhost", "127.8.0.1", "::1"])
def test_a_server_on_this_machine_may_be_given_a_password_unencrypted(server: str) -> None:
    assert Email(to=["a@b"], sender="a@b", server=server, security="none", user="a").server == server


def test_no_file_of_the_run_holds_the_secret_and_a_replay_tells_nobody(sink: Sink, tmp_path: Path) -> None:
    tell = ('hooks.tell={type="webhook", url="$SINK", when="epoch reaches 1"}', "trainer.epochs=2", "run.control=false")
    with from_file("iris", *tell, folder=tmp_path) as sigma:
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    assert [told["event"] for _, told in sink.sent] == ["plateau", "end"]
    assert all(told["run"] == folder.name for _, told in sink.sent)
    for path in folder.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
    sink.sent.clear()
    command = [sys.executable, "-m", "sigma_run", "replay", str(folder), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sink.sent == []
