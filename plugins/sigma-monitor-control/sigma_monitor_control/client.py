"""A client of the protocol: watch and steer a run of another process, from Python.

::

    with connect() as run:  # or connect("runs/digits-20260101-120000")
        run.set("learning_rate", 0.01)
        print(run.get("validation.accuracy"))
"""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel import errors
from sigma_kernel.errors import SigmaError, SigmaStateError
from sigma_monitor_control.protocol.documents import NOT_FINITE, request_line, sendable
from sigma_monitor_control.protocol.naming import is_pattern

PIECE = 1 << 16  # bytes read at a time


def to_error(error: Mapping[str, Any]) -> SigmaError:
    """Return the error that a document describes."""
    attribute = getattr(errors, str(error.get("kind")), None)
    type_ = attribute if isinstance(attribute, type) and issubclass(attribute, SigmaError) else SigmaStateError
    return type_(str(error.get("message")))


def to_value(value: Any) -> Any:
    """Return a value, with the strings that stand for numbers that are not finite as these."""
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


@define(eq=False, repr=False)
class Client:
    """A connection to a run; use one in each thread. It raises the run's errors as SigmaErrors.

    Values are plain: numbers, true and false, strings, lists; an array is a summary
    ``{"array": {"shape", "dtype", "low", "high", "mean", "deviation"}}``.  A short name stands for the one address that
    ends with it: ``learning_rate`` for ``trainer.optimiser.learning_rate``.
    """

    socket: socket.socket
    about: Mapping[str, Any] = field(factory=dict)  # name, folder, process, trainers of the run
    _data: bytearray = field(factory=bytearray, init=False)
    _ids: int = field(default=0, init=False)
    _others: dict[int, deque[dict[str, Any]]] = field(factory=dict, init=False)  # events of subscriptions, by id
    _over: set[int] = field(factory=set, init=False)  # subscriptions that were cancelled

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.about.get('name')!r}, process {self.about.get('process')})"

    @property
    def title(self) -> str:
        """Return the name of the run folder, or else of the run with its process."""
        folder = self.about["folder"]
        return f"{self.about['name']} (process {self.about['process']})" if folder is None else Path(folder).name

    def close(self) -> None:
        """Close the connection; the run continues."""
        self.socket.close()

    # -- reading -------------------------------------------------------------------------------------------------------
    def status(self) -> dict[str, Any]:
        """Return the state of the run, and each trainer's moment and latest values."""
        return dict(self.request("status"))

    def get(self, address: str, trainer: str | None = None) -> Any:
        """Return the value at an address or a short name; raises SigmaAddressError if it could be several."""
        if is_pattern(address):
            raise errors.SigmaAddressError(f"{address}: is a pattern. Call find() for all of its values.")
        (value,) = self.find(address, trainer).values()
        return value

    def find(self, pattern: str, trainer: str | None = None) -> dict[str, Any]:
        """Return the values that a pattern or a short name means, by their addresses."""
        values = self.request("get", pattern=pattern, trainer=trainer)
        return {address: to_value(value) for address, value in values.items()}

    def entries(self, pattern: str = "**", trainer: str | None = None) -> list[dict[str, Any]]:
        """Return addresses with the kind of their values: type, range, unit, and whether they can be set."""
        return list(self.request("entries", pattern=pattern, trainer=trainer))

    def watch(
        self, *patterns: str, every: float = 1.0, trainer: str | None = None
    ) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield seconds of training and the values that have changed, all of them first, until the run ends."""
        id = self._ask("watch", {"patterns": list(patterns), "every": every, "trainer": trainer})
        try:
            while (event := self._next_document(id)) is not None:
                document = event["event"]
                yield document["second"], {address: to_value(value) for address, value in document["values"].items()}
        finally:
            self._cancel(id)

    # -- steering ------------------------------------------------------------------------------------------------------
    def set(self, pattern: str, value: Any, trainer: str | None = None) -> dict[str, dict[str, Any]]:
        """Set the values of a pattern or a short name; return the moment at which each trainer applied it."""
        return self._read_moments(self.request("set", pattern=pattern, value=value, trainer=trainer))

    def send(self, command: str, trainer: str | None = None, **arguments: Any) -> dict[str, dict[str, Any]]:
        """Send a command, such as ``pause`` or ``rewind``; return the moment at which each trainer applied it.

        A moment has ``iteration`` and ``epoch``, and as ``row`` what the command wrote besides its fields, if anything.
        """
        return self._read_moments(self.request("command", name=command, arguments=arguments, trainer=trainer))

    def _read_moments(self, ticket: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        if ticket["state"] == "refused":
            raise to_error({"kind": ticket["kind"], "message": ticket["why"]})
        return dict(ticket["moments"])

    # -- documents -----------------------------------------------------------------------------------------------------
    def request(self, do: str, **arguments: Any) -> Any:
        """Return the result of any request of the protocol; raises the run's error."""
        id = self._ask(do, {name: sendable(value) for name, value in arguments.items()})
        while (answer := self._next_document(id)) is not None:
            if "result" in answer:  # else a command is acknowledged, which was queued
                return answer["result"]
        raise SigmaStateError("the run has ended, or has closed the connection.")

    def _cancel(self, id: int) -> None:
        """End a subscription, and drop its remaining events."""
        self._others.pop(id, None)
        self._over.add(id)
        with suppress(SigmaStateError, OSError):  # the run has ended, or the connection
            self._over.add(self._ask("cancel", {"of": id}))

    def _ask(self, do: str, arguments: Mapping[str, Any]) -> int:
        self._ids += 1
        given = {name: value for name, value in arguments.items() if value is not None}
        line = request_line(self._ids, do, given).encode()
        try:
            self.socket.sendall(line)
        except (BrokenPipeError, ConnectionError):
            raise SigmaStateError("the run has ended, or has closed the connection.") from None
        return self._ids

    def _next_document(self, id: int) -> dict[str, Any] | None:
        """Return the next document with an id; None once the run has ended.  Raises the error that it describes."""
        waiting = self._others.get(id)
        while not waiting:
            document = self._read()
            if document is None:
                return None
            if document.get("id") in (id, None):
                waiting = deque([document])
            elif document["id"] not in self._over:
                self._others.setdefault(document["id"], deque()).append(document)
        reply = waiting.popleft()
        if "error" in reply:
            raise to_error(reply["error"])
        return reply

    def _read(self) -> dict[str, Any] | None:
        while (end := self._data.find(b"\n")) < 0:
            try:
                piece = self.socket.recv(PIECE)
            except ConnectionError:
                return None
            if not piece:
                return None
            self._data += piece
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        document: dict[str, Any] = json.loads(line)
        return document
