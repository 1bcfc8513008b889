"""Relay documents to the process of a run through its socket, within the client's scopes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from attrs import define, field

from sigma_kernel.errors import SigmaError, SigmaStateError
from sigma_monitor_control.client import Client
from sigma_monitor_control.protocol import RECALLS, STEERS, Conversation
from sigma_monitor_control.protocol.documents import error_line, identity, parse_document
from sigma_monitor_web.keys import STEER

PIECE = 1 << 18  # bytes read at a time
MOST = 4 << 20  # bytes not relayed yet; beyond, reading from the process pauses


@define(eq=False)
class Relay:
    """A conversation with another process; ``local`` answers the requests of the directory.

    ``process`` is what ``hello`` states as the process of the run, if not the other process: for the reader of a stored
    run, the server, so that a page knows that nothing trains. ``who`` is the client's name in the journal.
    """

    client: Client
    local: Conversation
    scopes: frozenset[str]
    own: Collection[str]
    process: int | None = None
    who: str = ""
    waits: bool = True  # the process may send at any time
    is_subscribed: bool = True
    _data: bytearray = field(factory=bytearray, init=False)
    _over: bool = field(default=False, init=False)
    _hello: set[Any] = field(factory=set, init=False)  # requests whose answers state the scopes

    def __attrs_post_init__(self) -> None:
        """Read without waiting."""
        self.client.socket.setblocking(False)

    def notify(self, ready: Callable[[], None]) -> None:
        """Do nothing: the process's answers are polled."""

    def receive(self, text: str) -> list[str]:
        """Relay a document, or answer it."""
        try:
            document = parse_document(text)
            do, id = document.get("do"), identity(document)
        except SigmaError:
            return self.local.receive(text)  # it describes the mistake
        if not isinstance(do, str) or do in self.own:
            return self.local.receive(text)
        if (do in STEERS or do in RECALLS) and STEER not in self.scopes:
            return [error_line(id, SigmaStateError(f"{do}: not allowed here, as this connection may only read."))]
        if do == "hello":
            self._hello.add(id)
        return self._forward(self._sign(document) if do in STEERS else text)

    def _sign(self, document: dict[str, Any]) -> str:
        """Return a command with the name of its sender, whatever the client says."""
        document.pop("who", None)
        return json.dumps({**document, **({"who": self.who} if self.who else {})})

    def _forward(self, text: str) -> list[str]:
        socket = self.client.socket
        try:
            socket.settimeout(5.0)
            socket.sendall(text.replace("\n", " ").encode() + b"\n")
            socket.setblocking(False)
        except OSError:
            self._over = True
        return []

    def answers(self) -> list[str]:
        """Return the process's answers; raise ConnectionError once it has ended and all are returned.

        The page then reconnects to the current reader of the run.
        """
        while not self._over and len(self._data) < MOST:
            try:
                data = self.client.socket.recv(PIECE)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self._over = not data
            self._data += data
        end = self._data.rfind(b"\n") + 1
        lines = bytes(self._data[:end]).decode().splitlines(keepends=True)
        del self._data[:end]
        answers = [*map(self._narrow_hello, lines), *self.local.answers()]
        if self._over and not answers:
            raise ConnectionResetError("the process of the run has ended")
        return answers

    def _narrow_hello(self, line: str) -> str:
        """Return a line for the client: the answer to ``hello`` states the client's scopes, and who trains."""
        if not self._hello:
            return line
        document = json.loads(line)
        if document.get("id") not in self._hello or "result" not in document:
            return line
        self._hello.discard(document["id"])
        document["result"]["scopes"] = sorted(self.scopes)
        if self.process is not None:
            document["result"]["process"] = self.process
        return json.dumps(document) + "\n"

    def events(self, now: float) -> list[str]:
        """Return nothing: events come with the answers."""
        return []

    def last_lines(self) -> list[str]:
        """Return nothing: the process sends the closing messages."""
        return []

    def close(self) -> None:
        """Close the connection."""
        self.client.close()
