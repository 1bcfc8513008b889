"""Where the vectors and notes of shards are in shared memory: one slot for each shard, and one place for the sum."""

from __future__ import annotations

import json
from mmap import ALLOCATIONGRANULARITY, mmap
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.contracts import ShardPart
from sigma_operator_processes.segments import ALIGNMENT, align, grow_segment

NOTE = 4096 - ALIGNMENT  # bytes of a note that has room in the slot
SMALL = 1 << 18  # bytes of all slots up to which everybody adds everything, rather than a slice


@frozen
class SlotLayout:
    """Names, dtypes and lengths of the vectors of a shard, in the order of names; the same for all shards."""

    vectors: tuple[tuple[str, str, int], ...]

    @classmethod
    def from_part(cls, part: ShardPart) -> SlotLayout:
        """Return the layout of a part."""
        return cls(tuple((name, v.dtype.str, len(v)) for name, v in sorted(part.vectors.items())))

    @classmethod
    def from_text(cls, text: bytes) -> SlotLayout:
        """Return the layout that :meth:`text` wrote."""
        return cls(tuple((name, dtype, length) for name, dtype, length in json.loads(text)))

    def text(self) -> bytes:
        """Return the layout as bytes."""
        return json.dumps(self.vectors).encode()

    @property
    def nbytes(self) -> int:
        """Return the bytes of the vectors, each aligned."""
        return sum(align(np.dtype(dtype).itemsize * length) for _, dtype, length in self.vectors)

    def view(self, memory: memoryview) -> dict[str, np.ndarray]:
        """Return the vectors of a place in memory."""
        views, offset = dict[str, np.ndarray](), 0
        for name, dtype, length in self.vectors:
            views[name] = np.frombuffer(memory, dtype, length, offset)
            offset += align(views[name].nbytes)
        return views


@define(eq=False)
class ShardSlot:
    """The part of one shard in shared memory."""

    size: Any  # of the note, one number in shared memory
    note: memoryview
    vectors: dict[str, np.ndarray]

    def write(self, part: ShardPart) -> None:
        """Write a part; a note that has no room is written elsewhere."""
        self.size[0] = len(part.note)
        if len(part.note) <= NOTE:
            self.note[: len(part.note)] = part.note
        for name, vector in self.vectors.items():
            vector[...] = part.vectors[name]


@define(eq=False)
class Area:
    """The slots and the sum of one layout, mapped.

    If it is small, there are two sets of slots, which iterations use in turn: then everybody may read the slots of an
    iteration while others write those of the next.

    Args:
        descriptor: The segment.
        base: Where the area begins in it: the text of the layout, the sum, the slots.
        layout: What a slot holds.
        shards: How many slots there are.
    """

    descriptor: int
    base: int
    layout: SlotLayout
    shards: int
    is_small: bool = field(init=False)
    end: int = field(init=False)  # of the area, in the segment
    sums: dict[str, np.ndarray] = field(init=False)
    slots: list[list[ShardSlot]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        text, size = self.layout.text(), self.layout.nbytes
        self.is_small = size * self.shards <= SMALL
        start, stride = align(len(text)), 4096 + align(size)
        length = start + size + (1 + self.is_small) * self.shards * stride
        self.end = align(self.base + length, ALLOCATIONGRANULARITY)
        grow_segment(self.descriptor, self.end)
        memory = memoryview(mmap(self.descriptor, self.end - self.base, offset=self.base))
        memory[: len(text)] = text
        self.sums = self.layout.view(memory[start:])
        places = [memory[start + size + i * stride :] for i in range((1 + self.is_small) * self.shards)]
        slots = [self._slot(place) for place in places]
        self.slots = [slots[: self.shards], slots[-self.shards :]]

    def _slot(self, place: memoryview) -> ShardSlot:
        return ShardSlot(place[:8].cast("q"), place[ALIGNMENT:4096], self.layout.view(place[4096:]))

    def choose_slots(self, iteration: int, count: int) -> list[ShardSlot]:
        """Return the slots of the shards of an iteration, by its number."""
        return self.slots[iteration % 2][:count]


def cut_slice(length: int, part: int, parts: int) -> slice:
    """Return the slice of a vector that one of ``parts`` members adds; it may be empty."""
    return slice(length * part // parts, length * (part + 1) // parts)
