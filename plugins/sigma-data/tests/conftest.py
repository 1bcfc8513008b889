"""A local web server, and sources that hold bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from attrs import define, field

from sigma_kernel import SigmaDataError, Source
from sigma_testing import Memory


@pytest.fixture(scope="session")
def held() -> Callable[..., Source]:
    return partial(Memory, name="held")


@pytest.fixture(scope="session")
def told() -> Callable[..., str]:
    """Return a function that calls another, and returns the text of its SigmaDataError, or "held: nothing"."""

    def told(function: Callable[..., object], *arguments: object) -> str:
        try:
            function(*arguments)
        except SigmaDataError as error:
            return str(error)
        return "held: nothing"

    return told


@define
class Answers:
    """The server's answers: files by path, and how often and how each one fails."""

    files: dict[str, bytes] = field(factory=dict)
    cut: dict[str, list[int]] = field(factory=dict)  # bytes after which the next answers are cut off
    status: dict[str, list[int]] = field(factory=dict)  # status codes of the next answers
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(factory=list)
    address: str = ""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """Serve files on this machine; downloads do not pause between attempts."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr("sigma_data.sources.download.PAUSE", 0.0)
    answers = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.asked.append((self.path, self.headers.get("Range")))
            if answers.status.get(self.path):
                self.send_error(answers.status[self.path].pop(0))
            elif self.path in answers.files:
                self.give(answers.files[self.path])
            else:
                self.send_error(404)

        def give(self, content: bytes) -> None:
            wanted = self.headers.get("Range") if answers.ranges else None
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
            if wanted and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            left = answers.cut.get(self.path, [])
            self.wfile.write(content[start : left.pop(0) if left else None])
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        answers.address = f"http://127.0.0.1:{running.server_address[1]}"
        yield answers
        running.shutdown()
        thread.join()
