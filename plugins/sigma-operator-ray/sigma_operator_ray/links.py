"""Links between the workers of a node: packets through Ray's channels, which are shared memory.

A channel holds one packet, and goes in one direction. Until it is made, and for packets that it cannot hold, packets
are sent by calls of actors; each may take either way, as the exchange of slices needs no order of them. A channel
outlives generations, as Ray frees its memory with the process only. Packets say which generation they belong to.
"""

from __future__ import annotations

import pickle
import select
import socket
import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from attrs import define, field

from sigma_kernel.errors import error_text
from sigma_kernel.slices import Packet, PartsPacket
from sigma_operator_ray.engine import (
    PENDING,
    Handle,
    PacketChannel,
    call,
    get_node,
    get_result,
    is_actor_gone,
    open_channel,
    serialise,
)

LOOK_AGAIN = 0.005  # seconds: a ring may be lost
LEAST = 1 << 18  # bytes of a channel: packets that are sent whole, and their notes
ROOM = 256 << 20  # bytes of all channels that a worker makes in its life


@define(eq=False)
class Bell:
    """Wake a thread that waits for packets, from this process or from others of its machine.

    A ring is an empty datagram on the loopback interface. One too many is harmless: the thread finds no packet.
    """

    _socket: socket.socket = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        weakref.finalize(self, self._socket.close)

    @property
    def port(self) -> int:
        """Return where it is rung."""
        return int(self._socket.getsockname()[1])

    def ring(self, port: int) -> None:
        """Ring a bell, if it is still there."""
        with suppress(OSError):
            self._socket.sendto(b"\0", socket.MSG_DONTWAIT, ("127.0.0.1", port))

    def wait(self, seconds: float) -> None:
        """Wait until it is rung, at most so long."""
        if select.select([self._socket], [], [], seconds)[0]:
            self._socket.recv(1)


@define(eq=False)
class OutgoingLink:
    """The channel to a member, once there is one, and the packets that wait until the one before is read."""

    actor: Handle
    channel: PacketChannel | None = field(default=None, init=False)
    capacity: int = field(default=0, init=False)  # of the channel that was made last, or is being made
    port: int = field(default=0, init=False)  # of its reader's bell
    waiting: deque[Any] = field(factory=deque, init=False)

    def write(self, bell: Bell) -> bool:
        """Write what can be written; return whether nothing is left."""
        while self.waiting and self.channel is not None and self.channel.write(self.waiting[0]):
            self.waiting.popleft()
            bell.ring(self.port)
        return not self.waiting


@define(eq=False)
class Links:
    """The links of one worker to and from the other members.

    Args:
        worker: Its number.
        warn: Is told, once, why no channel can be made.
    """

    worker: int
    warn: Callable[[str], None]
    bell: Bell = field(factory=Bell, init=False)
    _outgoing: dict[int, OutgoingLink] = field(factory=dict, init=False)
    _incoming: dict[int, list[PacketChannel]] = field(factory=dict, init=False)
    _made: int = field(default=0, init=False)  # bytes of channels
    _has_failed: bool = field(default=False, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def keep(self, peers: Collection[int]) -> None:
        """Forget the links of all others."""
        with self._lock:
            for links in (self._outgoing, self._incoming):
                for number in [number for number in links if number not in peers]:
                    del links[number]

    def add_channel(self, peer: int, channel: PacketChannel) -> None:
        """Read a channel that another member has made, beside its smaller ones, in which a packet may be left."""
        with self._lock:
            self._incoming.setdefault(peer, []).append(channel)

    def locate(self) -> tuple[str, int]:
        """Return the node of this worker, and the port of its bell."""
        return get_node(), self.bell.port

    # -- the thread that adds ------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Drop the packets of an earlier sum, for which nobody waits."""
        with self._lock:
            for link in self._outgoing.values():
                link.waiting.clear()

    def send(self, peer: int, actor: Handle, packet: Packet) -> bool:
        """Let a packet be written to the channel of a member; return False if it has none of that size."""
        with self._lock:
            link = self._outgoing.setdefault(peer, OutgoingLink(actor))
        if link.channel is None:
            self._open(link, count_bytes(packet))
            return False
        data, size = serialise(pack(packet))
        if size > link.channel.capacity:
            self._open(link, size)
            return False
        link.waiting.append(data)
        return True

    def read(self, put: Callable[[Packet], None]) -> None:
        """Put the packets that have arrived."""
        with self._lock:
            incoming = [channel for channels in self._incoming.values() for channel in channels]
        for channel in incoming:
            if (value := channel.read()) is not PENDING:
                put(unpack(value))

    def write(self) -> bool:
        """Write what can be written; return whether nothing is left."""
        with self._lock:
            outgoing = [*self._outgoing.values()]
        written = [link.write(self.bell) for link in outgoing]
        return all(written)

    def wait(self, seconds: float) -> None:
        """Wait until a packet may have arrived; at most so long, or until it is time to look again."""
        self.bell.wait(min(seconds, LOOK_AGAIN))

    # -- channels ------------------------------------------------------------------------------------------------------
    def _open(self, link: OutgoingLink, size: int) -> None:
        """Make a channel by a thread of its own: the other end may be slow, or suspended."""
        capacity = max(1 << (size + size // 8).bit_length(), LEAST)
        if capacity > link.capacity and not self._has_failed and self._made + capacity <= ROOM:
            link.capacity = capacity
            self._made += capacity
            threading.Thread(target=self._connect, args=[link, capacity], name="sigma-link", daemon=True).start()

    def _connect(self, link: OutgoingLink, capacity: int) -> None:
        try:
            node, link.port = get_result(call(link.actor, "locate"))
            if node != get_node():
                link.capacity, self._made = ROOM, self._made - capacity  # none is made later either
                return
            channel = open_channel(link.actor, node, capacity)
        except Exception as error:
            if not is_actor_gone(error):
                self._fail(error)
        else:
            call(link.actor, "connect", self.worker, channel)
            link.channel = channel

    def _fail(self, error: Exception) -> None:
        with self._lock:
            is_first, self._has_failed = not self._has_failed, True
        if is_first:
            self.warn(f"Vectors are sent by calls of actors, as Ray's channels cannot be used: {error_text(error)}")


def count_bytes(packet: Packet) -> int:
    """Return the bytes of a packet's vectors and notes."""
    parts = [*packet.vectors.values()] if isinstance(packet, PartsPacket) else [packet.vectors]
    notes = packet.notes.values() if isinstance(packet, PartsPacket) else ()
    return sum(vector.nbytes for vectors in parts for vector in vectors.values()) + sum(map(len, notes))


def pack(packet: Packet) -> Packet | bytes:
    """Return a packet as a channel is to hold it: a small one as bytes, which takes Ray half the time."""
    return pickle.dumps(packet, protocol=5) if isinstance(packet, PartsPacket) and packet.is_whole else packet


def unpack(value: Packet | bytes) -> Packet:
    """Return what :func:`pack` was given. Vectors that are not whole occupy the channel until they are forgotten."""
    packet: Packet = pickle.loads(value) if isinstance(value, bytes) else value
    return packet
