"""The data plane of a generation: its members add the vectors of all shards in shared memory, each of them a slice.

In an iteration, each member writes the parts of its shards to their slots, and raises its first flag. Once all have, it
adds its slice over all shards, in the order of :func:`merge_in_tree`, and raises its second flag. Once all have, the
sum is complete: it is read in place. Small vectors are added whole by each member, who then needs no second flag.

A flag is the number of the iteration within the generation, with its position beside it. Each generation has segments
of its own, and a worker gets those of the generations that it is a member of. So a worker that was suspended, was lost
for that, and goes on may write what it likes: nobody of a later generation sees it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from mmap import ALLOCATIONGRANULARITY, mmap
from operator import attrgetter

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.contracts import Position, ShardPart, ShardSum, merge_in_tree
from sigma_operator_processes.areas import NOTE, Area, ShardSlot, SlotLayout, cut_slice
from sigma_operator_processes.segments import align, create_segment, grow_segment

WRITTEN, ADDED = 0, 1  # flags of a member, in the words that it has
WORDS = 8  # of 8 bytes: a cache line
SPIN = 300e-6  # seconds of waiting without sleep
NAPS = 50e-6, 1e-3  # seconds of a sleep, at least and at most: otherwise a part of what was waited already
SHARE = 0.05
FENCE = threading.Lock()


@frozen
class BoardSegments:
    """The shared memory of a generation, as the operator creates it: flags and vectors, and long notes."""

    vectors: int
    notes: int

    @classmethod
    def create(cls, members: int) -> BoardSegments:
        """Return the segments for so many members."""
        segments = cls(create_segment(), create_segment())
        grow_segment(segments.vectors, header_size(members))
        return segments

    def copy(self) -> tuple[int, int]:
        """Return descriptors of the segments, to be sent."""
        return os.dup(self.vectors), os.dup(self.notes)

    def close(self) -> None:
        """Close the segments; members still have them."""
        os.close(self.vectors)
        os.close(self.notes)


def header_size(members: int) -> int:
    """Return the bytes before the first area: the flags of each member, and where the layouts are."""
    return align(8 * WORDS * (members + 1), ALLOCATIONGRANULARITY)


@define(eq=False)
class RunningSum:
    """An iteration that is being added."""

    position: Position
    count: int
    parts: Mapping[int, ShardPart]
    slots: list[ShardSlot]  # none until the layout is known
    area: Area | None
    vectors: dict[str, np.ndarray] | None = None  # the result, once it is added
    notes: list[bytes] = field(factory=list)
    long_notes: bool = False


@define(eq=False)
class Board:
    """The end of a member.

    Args:
        generation: The generation.
        members: The numbers of its members, in order.
        worker: The number of this one.
        vectors, notes: Descriptors of the segments.
    """

    generation: int
    members: Sequence[int]
    worker: int
    vectors: int
    notes: int
    _rank: int = field(init=False)
    _flags: memoryview = field(init=False)
    _areas: dict[SlotLayout, Area] = field(factory=dict, init=False)
    _end: int = field(init=False)
    _round: int = field(default=0, init=False)
    _sum: RunningSum | None = field(default=None, init=False)
    _spin: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.members = sorted(self.members)
        self._rank, self._end = self.members.index(self.worker), header_size(len(self.members))
        self._flags = memoryview(mmap(self.vectors, self._end)).cast("q")
        self._spin = SPIN if len(self.members) <= (os.cpu_count() or 1) else 0.0

    def __del__(self) -> None:
        """Close the segments, once no thread adds any more."""
        os.close(self.vectors)
        os.close(self.notes)

    def sum(
        self,
        position: Position,
        parts: Mapping[int, ShardPart],
        count: int,
        shards: int,
        seconds: float,
        is_over: Callable[[], bool],
    ) -> ShardSum | None:
        """Return the sum of an iteration; None if it is not complete within ``seconds``, or the generation is over.

        The iteration has ``count`` shards, of at most ``shards``.
        """
        if len(self.members) == 1:
            return _add_parts([parts[shard] for shard in range(count)])
        if self._sum is None or self._sum.position != position:
            self._begin(position, parts, count, shards)
        assert self._sum is not None
        deadline = time.monotonic() + seconds
        if self._sum.vectors is None:
            if not self._wait(WRITTEN, deadline, is_over):
                return None
            self._add(self._sum, shards)
        if self._needs_second_flag(self._sum) and not self._wait(ADDED, deadline, is_over):
            return None
        return self._finish(self._sum)

    # -- the steps of an iteration -------------------------------------------------------------------------------------
    def _begin(self, position: Position, parts: Mapping[int, ShardPart], count: int, shards: int) -> None:
        self._round += 1
        area, slots = None, list[ShardSlot]()
        if parts:
            area = self._area(SlotLayout.from_part(next(iter(parts.values()))), shards)
            slots = area.choose_slots(self._round, count)
            for shard, part in parts.items():
                slots[shard].write(part)
        if 0 in parts and area is not None:
            at = self._layout_place()
            self._flags[at], self._flags[at + 1] = area.base, len(area.layout.text())
        self._sum = RunningSum(position, count, parts, slots, area)
        self._raise_flag(WRITTEN, position)

    def _add(self, own: RunningSum, shards: int) -> None:
        """Add this member's slice, and write its long notes."""
        if own.area is None:  # it has no shards, and others have shown the layout
            own.area = self._area(self._read_layout(), shards)
            own.slots = own.area.choose_slots(self._round, own.count)
        sizes = [slot.size[0] for slot in own.slots]
        own.long_notes = max(sizes) > NOTE
        if own.long_notes:
            self._write_notes(own, sizes)
        else:
            own.notes = [bytes(slot.note[:size]) for slot, size in zip(own.slots, sizes, strict=True)]
        slots = [slot.vectors for slot in own.slots]
        if own.area.is_small:
            own.vectors = {name: _add_vectors([slot[name] for slot in slots]) for name in own.area.sums}
        else:
            own.vectors = own.area.sums
            for name, total in own.vectors.items():
                part = cut_slice(len(total), self._rank, len(self.members))
                _add_in_place([slot[name][part] for slot in slots], total[part])
        if self._needs_second_flag(own):
            self._raise_flag(ADDED, own.position)

    def _needs_second_flag(self, own: RunningSum) -> bool:
        return own.long_notes or own.area is None or not own.area.is_small

    def _finish(self, own: RunningSum) -> ShardSum:
        self._sum = None
        vectors = {name: vector.view() for name, vector in (own.vectors or {}).items()}
        for vector in vectors.values():
            vector.flags.writeable = False
        return ShardSum(vectors, self._read_notes(own) if own.long_notes else own.notes)

    # -- notes that have no room in slots ------------------------------------------------------------------------------
    def _write_notes(self, own: RunningSum, sizes: Sequence[int]) -> None:
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        grow_segment(self.notes, ends[-1])
        for shard, part in own.parts.items():
            note, start = memoryview(part.note), ends[shard] - sizes[shard]
            while note:
                written = os.pwrite(self.notes, note, start)
                note, start = note[written:], start + written

    def _read_notes(self, own: RunningSum) -> list[bytes]:
        sizes, start, notes = [slot.size[0] for slot in own.slots], 0, list[bytes]()
        for size in sizes:
            notes.append(os.pread(self.notes, size, start))
            start += size
        return notes

    # -- areas ---------------------------------------------------------------------------------------------------------
    def _area(self, layout: SlotLayout, shards: int) -> Area:
        """Return the area of a layout; a new one begins after all others, for every member alike."""
        if layout not in self._areas:
            self._areas[layout] = Area(self.vectors, self._end, layout, shards)
            self._end = self._areas[layout].end
        return self._areas[layout]

    def _layout_place(self) -> int:
        """Return the index of the words that say where the layout of this iteration is."""
        return WORDS * len(self.members) + 2 * (self._round % 2)

    def _read_layout(self) -> SlotLayout:
        at = self._layout_place()
        return SlotLayout.from_text(os.pread(self.vectors, self._flags[at + 1], self._flags[at]))

    # -- flags ---------------------------------------------------------------------------------------------------------
    def _raise_flag(self, flag: int, position: Position) -> None:
        """Show the others that something is written: all of it is visible before the flag is."""
        at = WORDS * self._rank
        self._flags[at + 2], self._flags[at + 3] = position.iteration, position.version
        for _ in range(2):
            with FENCE:  # a lock is a barrier for the memory on every processor
                pass
        self._flags[at + flag] = self._round

    def _wait(self, flag: int, deadline: float, is_over: Callable[[], bool]) -> bool:
        """Return whether all members have raised a flag: by a short spin, then by naps."""
        began, flags, number, rank = time.monotonic(), self._flags, self._round, 0
        while True:
            while rank < len(self.members) and flags[WORDS * rank + flag] >= number:
                rank += 1
            if rank == len(self.members):
                return self._agrees()
            now = time.monotonic()
            if now >= deadline or is_over():
                return False
            if now - began < self._spin:
                os.sched_yield()
            else:
                time.sleep(min(max(SHARE * (now - began), NAPS[0]), NAPS[1]))

    def _agrees(self) -> bool:
        """Return whether the iteration of each member is this one, or the next of one that is ahead."""
        assert self._sum is not None
        here = self._sum.position
        places = [self._flags[WORDS * k + 2 : WORDS * k + 4] for k in range(len(self.members))]
        return all(place[0] >= here.iteration and place[1] == here.version for place in places)


# -- sums, in the order of merge_in_tree -------------------------------------------------------------------------------
def _add_vectors(vectors: Sequence[np.ndarray]) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        total: np.ndarray = merge_in_tree(vectors, np.add)
    return total.copy() if len(vectors) == 1 else total


def _add_in_place(vectors: Sequence[np.ndarray], total: np.ndarray) -> None:
    """Add vectors, which are overwritten, into ``total``."""
    left = len(vectors) - 1

    def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nonlocal left
        left -= 1
        result: np.ndarray = np.add(a, b, out=a if left else total)
        return result

    with np.errstate(invalid="ignore", over="ignore"):
        if (result := merge_in_tree(vectors, add)) is not total:
            total[...] = result


def _add_parts(parts: Sequence[ShardPart]) -> ShardSum:
    """Return the sum of the parts of all shards, which one member has."""
    vectors = {name: _add_vectors([part.vectors[name] for part in parts]) for name in parts[0].vectors}
    return ShardSum(vectors, [*map(attrgetter("note"), parts)])
