"""Report how far a long preparation is, such as the decoding of pictures, on the standard error as downloads are."""

from __future__ import annotations

import sys
import time

from attrs import define, field

PAUSE = 5.0  # seconds between two messages, and before the first


@define
class DecodingProgress:
    """The number of pictures that are decoded, of all, or of ``what`` else is done."""

    where: str
    total: int
    what: str = "pictures decoded"
    _count: int = 0
    _next: float = field(factory=lambda: time.monotonic() + PAUSE)

    def advance(self, count: int = 1) -> None:
        """Count what is done; report it if that is due."""
        self._count += count
        if (now := time.monotonic()) >= self._next:
            self._next = now + PAUSE
            report(f"{self.where}: {self._count:,} of {self.total:,} {self.what}.")


def report(text: str) -> None:
    """Write a line to the standard error."""
    sys.stderr.write(f"{text}\n")
