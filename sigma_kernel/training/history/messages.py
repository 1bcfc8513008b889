"""The log messages of a run, numbered, so that each monitor reads on from the last one it has read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from attrs import define, field


@define(eq=False)
class Messages:
    """The last thousand messages of a run."""

    _logged: deque[tuple[int, str]] = field(factory=lambda: deque(maxlen=1000))
    _count: Iterator[int] = field(factory=lambda: iter(range(1, 2**62)))

    def log(self, text: str) -> None:
        """Add a message."""
        self._logged.append((next(self._count), text))

    def after(self, number: int) -> list[tuple[int, str]]:
        """Return the messages that came after a number."""
        return [(n, text) for n, text in list(self._logged) if n > number]
