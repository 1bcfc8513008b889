"""Messages between two processes over a socket: pickles with a length, large arrays and descriptors beside them.

Large arrays of a message cross in shared memory: the sender writes them once, the receiver maps them. A packet can be
passed on to another process without being unpickled.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.contracts import Checkpoint, Commit
from sigma_operator_processes.segments import map_buffers, write_segment

HEADER = struct.Struct("<QiBI")  # bytes after it, the worker to pass it on to or -1, descriptors, buffers
LARGE = 1 << 16  # bytes of an array that crosses in shared memory
MOST_WAITING = 1000  # messages for a process that does not read; others are dropped, and orders are repeated
CHUNK = 1 << 18
MOST_DESCRIPTORS = 16


# -- messages beside events and orders ---------------------------------------------------------------------------------
@frozen
class Welcome:
    """The first message to a worker: its number, and where modules are found."""

    worker: int
    path: Sequence[str]
    variables: dict[str, str | None]  # of the environment, to be restored


@frozen
class StateRequest:
    """The worker asks for the state of a commit."""

    worker: int
    commit: Commit


@frozen
class StateReply:
    """The state of a commit; None if it is not there."""

    commit: Commit
    state: Checkpoint | None


# -- packets -----------------------------------------------------------------------------------------------------------
@frozen
class Packet:
    """A message as it crosses: its bytes, and descriptors, of which the first is the segment of its large arrays."""

    body: bytes
    descriptors: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()  # of the large arrays
    route: int = -1

    def load(self) -> Any:
        """Return the message, and close the descriptor of its arrays. May be called once."""
        if not self.sizes:
            return pickle.loads(self.body)
        try:
            return pickle.loads(self.body, buffers=map_buffers(self.descriptors[0], self.sizes))
        finally:
            os.close(self.descriptors[0])

    @property
    def extra_descriptors(self) -> tuple[int, ...]:
        """Return the descriptors that were sent along, beside that of the arrays."""
        return self.descriptors[1:] if self.sizes else self.descriptors

    def copy(self) -> Packet:
        """Return a packet with descriptors of its own, to be sent several times."""
        return Packet(self.body, tuple(map(os.dup, self.descriptors)), self.sizes, self.route)

    def close(self) -> None:
        """Close all descriptors, of a packet that is not sent."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def encode(message: Any, route: int = -1, attached: Sequence[int] = ()) -> Packet:
    """Return the packet of a message; ``attached`` are descriptors that it takes along, and closes."""
    buffers = list[memoryview]()

    def stays_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= LARGE:
            buffers.append(raw)
        return raw.nbytes < LARGE

    body = pickle.dumps(message, protocol=5, buffer_callback=stays_inside)
    segment = (write_segment(buffers),) if buffers else ()
    return Packet(body, (*segment, *attached), tuple(buffer.nbytes for buffer in buffers), route)


# -- the socket --------------------------------------------------------------------------------------------------------
@define(eq=False)
class Link:
    """One end of a connection; threads may send at once, and one receives. Neither waits."""

    socket: socket.socket
    closed: bool = field(default=False, init=False)  # nothing more is received
    _is_mute: bool = field(default=False, init=False)  # nothing more is sent
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _outbox: deque[tuple[memoryview, tuple[int, ...]]] = field(factory=deque, init=False)
    _inbox: bytearray = field(factory=bytearray, init=False)
    _descriptors: deque[int] = field(factory=deque, init=False)

    def __attrs_post_init__(self) -> None:
        self.socket.setblocking(False)

    @property
    def is_behind(self) -> bool:
        """Return whether messages wait to be sent, by :meth:`flush`."""
        return bool(self._outbox)

    def send(self, packet: Packet) -> None:
        """Send a packet; its descriptors are closed. Nothing happens if the other end is gone, or has not read long."""
        header = HEADER.pack(
            len(packet.body) + 8 * len(packet.sizes), packet.route, len(packet.descriptors), len(packet.sizes)
        )
        sizes = struct.pack(f"<{len(packet.sizes)}Q", *packet.sizes)
        with self._lock:
            if self._is_mute or len(self._outbox) >= MOST_WAITING:
                packet.close()
                return
            self._outbox.append((memoryview(header + sizes + packet.body), packet.descriptors))
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the other end has room for it."""
        with self._lock:
            while self._outbox:
                data, descriptors = self._outbox[0]
                try:
                    sent = socket.send_fds(self.socket, [data], descriptors) if descriptors else self.socket.send(data)
                except (BlockingIOError, InterruptedError):
                    return
                except OSError:  # the other end is gone
                    self._drop()
                    return
                _close_all(descriptors)
                if sent == len(data):
                    self._outbox.popleft()
                else:
                    self._outbox[0] = (data[sent:], ())

    def wait(self, seconds: float | None = None) -> None:
        """Wait until something has arrived, or there is room for what waits; send that."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | (select.POLLOUT if self.is_behind else 0))
        poll.poll(None if seconds is None else 1000 * seconds)
        self.flush()

    def receive(self) -> list[Packet]:
        """Return the packets that have arrived; :attr:`closed` says whether the other end is gone."""
        try:
            with suppress(BlockingIOError, InterruptedError):  # nothing more is there
                while not self.closed:
                    self._read()
        except OSError:
            self.close()
        packets = self._parse()
        if self.closed:  # those of a packet that is not complete
            _close_all(self._descriptors)
            self._descriptors.clear()
        return packets

    def _read(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self.socket, CHUNK, MOST_DESCRIPTORS)
        self._descriptors.extend(descriptors)
        self._inbox += data
        if not data:
            self.close()

    def close(self) -> None:
        """Send and receive no more; the socket stays open."""
        self.closed = True
        with self._lock:
            self._drop()

    def shut(self) -> None:
        """Close the connection for both ends."""
        self.close()
        with suppress(OSError):  # it is closed already
            self.socket.shutdown(socket.SHUT_RDWR)

    def _parse(self) -> list[Packet]:
        packets = list[Packet]()
        while len(self._inbox) >= HEADER.size:
            size, route, count, buffers = HEADER.unpack_from(self._inbox)
            end = HEADER.size + size
            if len(self._inbox) < end:
                break
            start = HEADER.size + 8 * buffers
            sizes = struct.unpack_from(f"<{buffers}Q", self._inbox, HEADER.size)
            descriptors = tuple(self._descriptors.popleft() for _ in range(count))
            packets.append(Packet(bytes(self._inbox[start:end]), descriptors, sizes, route))
            del self._inbox[:end]
        return packets

    def _drop(self) -> None:
        self._is_mute = True
        for _, descriptors in self._outbox:
            _close_all(descriptors)
        self._outbox.clear()


def _close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
