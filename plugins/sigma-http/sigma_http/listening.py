"""Accept connections so that clients that never say anything do not occupy a server.

A connection is silent until its first request has come: during its TLS handshake, and while its head is sent.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from attrs import define, field

MOST_OF_CLIENT = 64  # silent connections of an address; another one is closed at once
MOST_SILENT = 256  # of all clients; beyond, the oldest are closed
LONGEST_SILENCE = 20.0  # seconds until the first request must have come
IN_A_ROW = 16  # connections that are accepted before those before them are read

Accepted = tuple[socket.socket, Any]  # a connection, and the address of its client


@define(eq=False)
class SilentConnections:
    """The connections of a server on which no request has come yet, oldest first.

    Args:
        protocols: Those of uvicorn, of connections whose handshake is over.
        clock: A monotonic clock, in seconds.
    """

    protocols: set[Any]
    clock: Callable[[], float] = time.monotonic
    _began: dict[Any, tuple[socket.socket, float]] = field(factory=dict, init=False)  # by address and port
    _in_a_row: int = field(default=0, init=False)

    def admit(self, accept: Callable[[], Accepted]) -> Accepted:
        """Accept a connection; raise BlockingIOError for a pause, ConnectionAbortedError for a client with too many."""
        self._in_a_row = (self._in_a_row + 1) % (IN_A_ROW + 1)
        if not self._in_a_row:
            raise BlockingIOError
        connection, address = accept()
        if self._count(address[0]) >= MOST_OF_CLIENT:
            self.look()
        if self._count(address[0]) >= MOST_OF_CLIENT:
            connection.close()
            raise ConnectionAbortedError
        self._began[address[:2]] = connection, self.clock()
        return connection, address

    def look(self) -> None:
        """Forget those that have spoken or are closed; close those that are too old or too many."""
        spoken = {*self._speakers()}
        self._began = {
            peer: (connection, began)
            for peer, (connection, began) in self._began.items()
            if peer not in spoken and connection.fileno() >= 0
        }
        surplus = len(self._began) - MOST_SILENT
        for place, (connection, began) in enumerate(self._began.values()):
            if place < surplus or self.clock() - began > LONGEST_SILENCE:
                with suppress(OSError):  # its client has left
                    connection.shutdown(socket.SHUT_RDWR)  # asyncio then closes it

    def _count(self, host: str) -> int:
        return sum(peer[0] == host for peer in self._began)

    def _speakers(self) -> Iterator[Any]:
        """Yield the addresses of connections on which a request has come; a WebSocket is one."""
        for protocol in self.protocols:
            transport = getattr(protocol, "transport", None)
            if transport is not None and getattr(protocol, "cycle", protocol) is not None:
                yield (transport.get_extra_info("peername") or (None,))[:2]


class ListeningSocket(socket.socket):
    """A listening socket that limits silent connections, once it is told of them.

    asyncio accepts by it where it selects sockets: everywhere but on Windows.
    """

    silent: SilentConnections | None = None

    def accept(self) -> Accepted:
        """Return the next connection; raise BlockingIOError if there is none to be accepted now."""
        return super().accept() if self.silent is None else self.silent.admit(super().accept)
