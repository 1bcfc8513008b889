"""Offsets of values in one block of memory: a value takes the place of those that nothing reads any more."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

ALIGNED = 256  # bytes


@define
class ArenaLayout:
    """Bytes in use, from one launch to another (both inclusive)."""

    size: int = 0
    _taken: list[tuple[int, int, int, int]] = field(factory=list)  # offset, end, first, last

    def place(self, size: int, first: int, last: int) -> int:
        """Return the lowest offset at which nothing else lies meanwhile."""
        wide, offset = max(ALIGNED, -(-size // ALIGNED) * ALIGNED), 0
        for begin, end, since, until in sorted(self._taken):
            if since <= last and first <= until:
                if begin - offset >= wide:
                    break
                offset = max(offset, end)
        self._taken.append((offset, offset + wide, first, last))
        self.size = max(self.size, offset + wide)
        return offset


def total(sizes: Iterable[int]) -> int:
    """Return the bytes of arrays side by side."""
    return sum(max(ALIGNED, -(-size // ALIGNED) * ALIGNED) for size in sizes)
