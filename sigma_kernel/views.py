"""The views of monitors on an environment, and their commands."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, wait
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attrs import define, field

from sigma_kernel.arrays import PLAIN, protect
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import AddressEntry, Stretch, Ticket, TrainerView
from sigma_kernel.contracts.running import Host, Trainer
from sigma_kernel.curves import Window
from sigma_kernel.encoding import pack
from sigma_kernel.errors import SigmaAddressError
from sigma_kernel.messages import Messages
from sigma_kernel.registry.registry import Kind, Registry
from sigma_kernel.threads import in_thread

TYPES = {float: "number", int: "whole", bool: "flag", str: "text"}


class Watchable(Host, Protocol):
    """The environment as a view reads it."""

    name: str
    messages: Messages[str]
    rows: Messages[Mapping[str, Any]]
    tickets: Messages[Ticket]

    @property
    def run_folder(self) -> Path | None:
        """Return the run folder."""

    def status(self) -> str:
        """Return the state, ``compiling``, or how training ended."""

    def why(self) -> str:
        """Return why training failed."""

    def trainer(self, name: str) -> Trainer:
        """Return a trainer."""

    def send(self, command: str, **arguments: Any) -> Mapping[str, Moment]:
        """Send a command, and wait until it was applied."""


@define(eq=False, repr=False)
class EnvironmentView:
    """The view of a monitor: read values and messages, send commands, from its own threads."""

    environment: Watchable
    over: threading.Event
    _sent: Future[Mapping[str, Moment]] | None = field(default=None, init=False)  # the answer to the last command
    _gate: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def name(self) -> str:
        """Return the name of the environment."""
        return self.environment.name

    @property
    def folder(self) -> Path | None:
        """Return the run folder."""
        return self.environment.run_folder

    def status(self) -> str:
        """Return the state of the environment, ``compiling``, or how training ended."""
        return self.environment.status()

    def why(self) -> str:
        """Return why training failed; empty if it did not."""
        return self.environment.why()

    def wait(self, seconds: float) -> bool:
        """Sleep; return whether the run is over."""
        return self.over.wait(seconds)

    # -- values --------------------------------------------------------------------------------------------------------
    def get(self, address: str) -> Any:
        """Return a value."""
        return protect(self.environment.registry.get(address))

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return all values that match a pattern, with their addresses."""
        return [(address, protect(value)) for address, value in self.environment.registry.find(pattern)]

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return the addresses that match a pattern, with their kinds; values of hooks may disappear meanwhile."""
        registry = self.environment.registry
        entries = (_entry(registry, name, *kind) for name, kind in registry.kinds(pattern).items())
        return [entry for entry in entries if entry is not None]

    def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return the recorded values, or changes, of an address since a cursor, and the next cursor."""
        trainer, _, name = address.partition(".")
        return self.trainer(trainer).stretches(name, after, most)

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the points of an address that a chart shows, and a cursor."""
        trainer, _, name = address.partition(".")
        return self.trainer(trainer).points(name, window, after)

    # -- trainers ------------------------------------------------------------------------------------------------------
    def trainers(self) -> list[str]:
        """Return the names of the trainers."""
        return list(self.environment.trainers)

    def trainer(self, name: str) -> TrainerView:
        """Return the view of one trainer."""
        return self.environment.trainer(name).view

    def log(self, text: str) -> None:
        """Log a message."""
        self.environment.log(text)

    # -- commands ------------------------------------------------------------------------------------------------------
    def send(self, command: str, **arguments: Any) -> Ticket:
        """Send a command, in a thread that waits for the one before; return its ticket at once."""
        with self._gate:
            answer = in_thread(partial(self._send, self._sent, command, arguments), "sigma-commands")
            self._sent = answer
            return self.environment.tickets.add(lambda number: Ticket(number, command, arguments, answer))

    def _send(self, earlier: Future[Any] | None, command: str, arguments: Mapping[str, Any]) -> Mapping[str, Moment]:
        if earlier is not None:
            wait([earlier])
        return self.environment.send(command, **arguments)

    def tickets(self, after: int = 0) -> list[Ticket]:
        """Return the tickets after a number."""
        return [ticket for _, ticket in self.environment.tickets.entries_after(after)]

    def journal(self, after: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows of the journal after a number, but digests."""
        rows = self.environment.rows.entries_after(after)
        return [(number, pack(row)) for number, row in rows]

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return the numbered messages after a number."""
        return self.environment.messages.entries_after(after)


def _entry(registry: Registry, address: str, kind: Kind, settable: bool) -> AddressEntry | None:
    """Return an address with its kind; None if it has just been removed."""
    type_, shape, value = TYPES.get(kind.type, "any"), None, None
    if kind.shape is not None:
        type_, shape = "array", kind.shape
    else:
        try:
            value = registry.get(address)
        except SigmaAddressError:  # not published yet, or no longer there
            if address not in registry:
                return None
        if isinstance(value, np.ndarray):
            type_, shape, value = "array", value.shape, None
        elif type_ == "any" and isinstance(value, PLAIN):
            value = value.item() if isinstance(value, np.generic) else value
            type_ = TYPES[type(value)] if type(value) is not int else "number"
        elif not isinstance(value, PLAIN):
            value = None
    limits = (kind.low, kind.high, kind.above, kind.below)
    return AddressEntry(address, type_, value, settable, *limits, kind.unit, kind.doc, _tags(registry, address), shape)


def _tags(registry: Registry, address: str) -> tuple[str, ...]:
    """Return the tags of all levels above a value."""
    heads = accumulate(address.split(".")[:-1], "{}.{}".format)
    return tuple(tag for head in heads for tag in sorted(registry.tags(head)))
