"""A server under load answers every request rightly, and ends as it is told to."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import click
import numpy as np
import pytest

from sigma_run import Trained
from sigma_serve.command import ending, serve
from sigma_testing import VerbSuite

CLIENTS, REQUESTS, WAIT = 20, 50, 60.0
HEADERS = {"content-type": "application/json"}


@contextmanager
def serving(run: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a server, and end it; its process and port."""
    command = [sys.executable, "-m", "sigma_run", "serve", str(run), *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if place := re.search(r"serves .*: http://127\.0\.0\.1:(\d+)/", line):
                    yield process, int(place[1])
                    break
        finally:
            process.kill()


def ask_often(port: int, rows: np.ndarray) -> list[list[float]]:
    """Return the probabilities of rows that one client asks for, one a request, by one connection."""
    connection, answers = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT), []
    for row in rows:
        connection.request("POST", "/predict", json.dumps([row.tolist()]), HEADERS)
        answer = connection.getresponse()
        assert answer.status == 200
        answers.append(json.loads(answer.read())["predictions"][0]["probabilities"])
    connection.close()
    return answers


def test_many_clients_at_once_are_answered_with_the_bits_of_each_row_alone(flowers: Path, model: Trained) -> None:
    rows = np.random.default_rng(0).random((CLIENTS, REQUESTS, 4))
    with serving(flowers) as (process, port):
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = [*pool.map(lambda own: ask_often(port, own), rows)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
    alone = [[model.predict(row[None])[0].tolist() for row in own] for own in rows]
    assert answers == alone


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_is_ended_under_load_sends_no_half_answer(flowers: Path, number: signal.Signals) -> None:
    before = {path: path.stat().st_mtime_ns for path in flowers.rglob("*")}
    whole, cut, begun = list[str](), list[str](), threading.Event()

    def ask() -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)) as connection:
            while True:
                try:
                    connection.request("POST", "/predict", "[[1, 0, 1, 1]]", HEADERS)
                    with connection.getresponse() as answer:
                        assert answer.status == 200
                        whole.append(json.loads(answer.read())["predictions"][0]["label"])
                    begun.set()
                except (http.client.IncompleteRead, ValueError) as error:
                    cut.append(repr(error))
                except (OSError, http.client.HTTPException):
                    return

    with serving(flowers) as (process, port):
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert begun.wait(WAIT)
        process.send_signal(number)
        code = process.wait(WAIT)
        for thread in threads:
            thread.join(WAIT)
    assert code == (-number if number == signal.SIGKILL else 0)
    assert len({*whole}) == 1
    assert cut == [] or number == signal.SIGKILL
    assert {path: path.stat().st_mtime_ns for path in flowers.rglob("*")} == before


def test_a_token_from_the_environment_locks_the_server(flowers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_SERVER", "b" * 16)
    with serving(flowers, "--token", "$KEY_OF_SERVER") as (_, port):
        for headers, status in (({}, 401), ({"authorization": f"Bearer {'b' * 16}"}, 200)):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)) as connection:
                connection.request("POST", "/predict", "[[1, 0, 1, 1]]", HEADERS | headers)
                with connection.getresponse() as answer:
                    assert answer.status == status


def test_signals_are_handled_as_before_once_the_server_has_ended() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ending() as over:
        os.kill(os.getpid(), signal.SIGTERM)
        assert over.wait(WAIT)
    assert signal.getsignal(signal.SIGTERM) is before


class TestServe(VerbSuite):
    heavy = ("matplotlib", "torch", "jax")  # what it answers are arrays

    @pytest.fixture(autouse=True)
    def _ends(self, flowers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = flowers
        monkeypatch.setattr("sigma_serve.command.serve_until", end_at_once)

    def make(self) -> click.Command:
        return serve

    def arguments(self) -> Sequence[str]:
        return [str(self.folder)]

    def mistakes(self) -> Sequence[Sequence[str]]:
        run = str(self.folder)
        return [
            [run, "--port", "70000"], [run, "--host", "0.0.0.0"], [run, "--token", "short"], [run, "--most-rows", "0"],
            [run, "--checkpoint", "12345"], ["nothing"],
        ]  # fmt: skip


async def end_at_once(*_: object, **__: object) -> None:
    """Serve nothing."""
