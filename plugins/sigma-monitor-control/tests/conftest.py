from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from sigma_kernel.contracts import AddressEntry
from sigma_monitor_control import places
from sigma_monitor_control.budget import WorkBudget
from sigma_monitor_control.server import Server
from sigma_testing import FakeView

VALUES = {
    "trainer.iteration": 120,
    "trainer.epoch": 3,
    "trainer.second": 4.5,
    "trainer.epochs": float("inf"),
    "trainer.training.loss": 0.25,
    "trainer.validation.loss": 0.5,
    "trainer.validation.accuracy": 0.75,
    "trainer.optimiser.1-output.weights.learning_rate": 0.1,
    "trainer.optimiser.learning_rate": 0.1,
    "trainer.hooks.loss.every": "1 epoch",
}
TYPES = {int: "whole", float: "number", str: "text"}


def entries() -> dict[str, AddressEntry]:
    settable = ("learning_rate", "every")
    return {
        address: AddressEntry(address, TYPES[type(value)], value, address.endswith(settable))
        for address, value in VALUES.items()
    }


def view(**given: Any) -> FakeView:
    """Return the view of a trainer, whose values can be changed."""
    return FakeView(**{"values": dict(VALUES), "entries_of": entries(), **given})


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let sockets lie in a directory of the test's own, whose path is short enough."""
    folder = Path(tempfile.mkdtemp()).resolve()
    monkeypatch.setattr(places, "directories", lambda: [folder / "sigma"])
    yield folder / "sigma"
    shutil.rmtree(folder)


@define(eq=False)
class Bench:
    """A server whose turns the test takes, with a clock that the test sets."""

    view: FakeView
    path: Path
    server: Server
    now: list[float]
    clients: list[socket.socket] = field(factory=list)

    def connected(self) -> socket.socket:
        """Return a client's end of a new connection."""
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self.path))
        client.setblocking(False)
        self.clients.append(client)
        return client

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.server.turn()

    def wait(self, seconds: float) -> None:
        self.now[0] += seconds


@pytest.fixture
def bench(home: Path) -> Iterator[Bench]:
    listener, path = places.open_listener()
    now = [0.0]
    shown = view()
    server = Server(shown, listener, os.getuid(), lambda: now[0], WorkBudget())
    server.open()
    bench = Bench(shown, path, server, now)
    yield bench
    for client in bench.clients:
        client.close()
    server.close()
    listener.close()


@pytest.fixture
def serve(home: Path) -> Iterator[Callable[..., FakeView]]:
    """Return a function that serves a view, in a thread, until the test ends."""
    ends: list[Callable[[], None]] = []

    def begin(shown: FakeView | None = None) -> FakeView:
        shown = shown or view()
        listener, path = places.open_listener()
        if shown.folder is not None:
            places.announce_run(shown.folder, path)
        thread = threading.Thread(target=Server(shown, listener, os.getuid()).run)
        thread.start()

        def end() -> None:
            shown.over.set()
            thread.join(60)
            listener.close()
            places.remove_file(path)

        ends.append(end)
        return shown

    yield begin
    for end in ends:
        end()
