"""Sums of vectors by an exchange of slices, for transports whose workers share no memory.

These say what a member sends to others, and what it waits for; the transport carries the packets.

In an iteration, each member sends every other one its slice of the vectors of the own shards, with their notes. It
adds its slice over all shards, in the order of :func:`merge_in_tree`, and sends the sum to all others. Small vectors
are sent whole, and added by everybody, without a second exchange.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.contracts.grouping import Position, ShardPart, ShardSum
from sigma_kernel.contracts.steering import merge_in_tree

SMALL = 1 << 17  # bytes of the vectors of all shards that are sent whole
Vectors = Mapping[str, np.ndarray]


@frozen
class SumKey:
    """An iteration of a generation: a packet counts for no other one."""

    generation: int
    position: Position


@frozen
class PartsPacket:
    """The vectors of a member's shards, whole or a slice of each, and their notes."""

    key: SumKey
    vectors: Mapping[int, Vectors] = field(repr=False)
    notes: Mapping[int, bytes] = field(repr=False)
    is_whole: bool


@frozen
class SlicePacket:
    """The sums of a member's slices."""

    key: SumKey
    rank: int
    vectors: Vectors = field(repr=False)


Packet = PartsPacket | SlicePacket
Send = Callable[[int, Packet], None]  # to a member, by its rank


def cut_slice(length: int, rank: int, members: int) -> slice:
    """Return the slice of a vector that a member adds; it may be empty."""
    return slice(length * rank // members, length * (rank + 1) // members)


def cut_vectors(vectors: Vectors, rank: int, members: int) -> Vectors:
    """Return the slices of vectors that a member adds."""
    return {name: vector[cut_slice(len(vector), rank, members)] for name, vector in vectors.items()}


def add_vectors(parts: Sequence[Vectors]) -> Vectors:
    """Return the sums of vectors over all shards."""
    with np.errstate(invalid="ignore", over="ignore"):
        return {name: merge_in_tree([part[name] for part in parts], np.add) for name in parts[0]}


@define(eq=False)
class SliceSum:
    """The sum of an iteration, as one member sees it.

    Args:
        key: The iteration.
        rank: The place of this member.
        members: The number of members.
        count: The number of shards.
        send: Sends a packet to a member.
    """

    key: SumKey
    rank: int
    members: int
    count: int
    send: Send
    _parts: dict[int, Vectors] = field(factory=dict, init=False)
    _notes: dict[int, bytes] = field(factory=dict, init=False)
    _slices: dict[int, Vectors] = field(factory=dict, init=False)
    _is_whole: bool = field(default=False, init=False)

    @property
    def is_complete(self) -> bool:
        """Return whether the sum is known."""
        return len(self._slices) == (1 if self._is_whole else self.members) and len(self._parts) == self.count

    def begin(self, parts: Mapping[int, ShardPart]) -> None:
        """Send the parts of this member's shards."""
        if not parts:
            return
        size = sum(vector.nbytes for vector in next(iter(parts.values())).vectors.values())
        is_whole = size * self.count <= SMALL or self.members == 1
        for rank in self._ranks():
            self.send(rank, self._pack(parts, rank, is_whole))
        self.receive(self._pack(parts, self.rank, is_whole))

    def _ranks(self) -> Sequence[int]:
        """Return the ranks of the others, each member beginning with the one behind it."""
        return [(self.rank + i) % self.members for i in range(1, self.members)]

    def _pack(self, parts: Mapping[int, ShardPart], rank: int, is_whole: bool) -> PartsPacket:
        cut = (lambda vectors: vectors) if is_whole else (lambda vectors: cut_vectors(vectors, rank, self.members))
        vectors = {shard: cut(part.vectors) for shard, part in parts.items()}
        return PartsPacket(self.key, vectors, {shard: part.note for shard, part in parts.items()}, is_whole)

    def receive(self, packet: Packet) -> None:
        """Take a packet of this iteration; add this member's slice once it has all of its parts."""
        if isinstance(packet, SlicePacket):
            self._slices[packet.rank] = packet.vectors
            return
        self._parts |= packet.vectors
        self._notes |= packet.notes
        if len(self._parts) == self.count and self.rank not in self._slices:
            self._add(packet.is_whole)

    def _add(self, is_whole: bool) -> None:
        self._is_whole = is_whole
        self._slices[self.rank] = add_vectors([self._parts[shard] for shard in range(self.count)])
        self._parts = {shard: {} for shard in self._parts}  # what a transport has lent is given back
        if not is_whole:
            for rank in self._ranks():
                self.send(rank, SlicePacket(self.key, self.rank, self._slices[self.rank]))

    def result(self) -> ShardSum:
        """Return the sum."""
        own = self._slices[self.rank]
        if not self._is_whole:
            ranks = range(self.members)
            own = {name: np.concatenate([self._slices[rank][name] for rank in ranks]) for name in own}
        return ShardSum(own, [self._notes[shard] for shard in range(self.count)])


@define(eq=False)
class Mailbox:
    """Packets that have arrived, by iteration; those of ended generations are dropped."""

    _generation: int = field(default=-1, init=False)
    _packets: dict[SumKey, list[Packet]] = field(factory=dict, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)

    def put(self, packet: Packet) -> None:
        """Keep a packet, unless its generation has ended."""
        with self._gate:
            if packet.key.generation >= self._generation:
                self._packets.setdefault(packet.key, []).append(packet)
                self._gate.notify_all()

    def begin_generation(self, generation: int) -> None:
        """Drop the packets of earlier generations, and wake who waits for one."""
        with self._gate:
            self._generation = max(generation, self._generation)
            self._drop(lambda key: key.generation < self._generation)
            self._gate.notify_all()

    def begin_sum(self, key: SumKey) -> None:
        """Drop the packets of iterations before one."""
        with self._gate:
            self._drop(lambda other: (other.generation, other.position) < (key.generation, key.position))

    def _drop(self, is_old: Callable[[SumKey], bool]) -> None:
        for key in [key for key in self._packets if is_old(key)]:
            del self._packets[key]

    def take(self, key: SumKey, deadline: float) -> list[Packet]:
        """Return the packets of an iteration that have arrived since; none after the deadline, or the generation."""
        with self._gate:
            while key not in self._packets and key.generation >= self._generation:
                if not self._gate.wait(max(deadline - time.monotonic(), 0.0)):
                    break
            return self._packets.pop(key, [])
