"""The log of a run: numbered messages or journal rows, so that each monitor reads on from the last that it has read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from attrs import define, field

T = TypeVar("T")


@define(eq=False)
class Messages(Generic[T]):
    """The last thousand entries."""

    _logged: deque[tuple[int, T]] = field(factory=lambda: deque(maxlen=1000))
    _count: Iterator[int] = field(factory=lambda: iter(range(1, 2**62)))

    def log(self, entry: T) -> None:
        """Add an entry."""
        self.add(lambda number: entry)

    def add(self, make: Callable[[int], T]) -> T:
        """Add and return the entry built from its number."""
        number = next(self._count)
        self._logged.append((number, message := make(number)))
        return message

    def entries_after(self, number: int) -> list[tuple[int, T]]:
        """Return the entries that came after a number."""
        return [(n, entry) for n, entry in list(self._logged) if n > number]
