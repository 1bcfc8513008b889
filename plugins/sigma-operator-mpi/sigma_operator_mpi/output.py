"""Write what a worker prints to standard error, each line with the number of the worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


class NumberedLines:
    """A stream that writes whole lines to another one, after the number of the worker."""

    def __init__(self, stream: TextIO | None, worker: int) -> None:
        self._stream, self._worker, self._rest = stream, worker, ""

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, as far as its lines have ended."""
        *lines, self._rest = (self._rest + text).split("\n")
        with suppress(OSError, ValueError, AttributeError):  # of a stream that is closed, or missing
            self._stream.write("".join(f"[worker {self._worker}] {line}\n" for line in lines))  # type: ignore[union-attr]
            self._stream.flush()  # type: ignore[union-attr]
        return len(text)

    def end(self) -> None:
        """Write a last line that has not ended."""
        if self._rest:
            self.write("\n")


@contextmanager
def number_lines(worker: int) -> Iterator[None]:
    """Let what is printed meanwhile have the number of a worker."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = lines = [NumberedLines(sys.stderr, worker) for _ in before]
    try:
        yield
    finally:
        for stream in lines:
            stream.end()
        sys.stdout, sys.stderr = before
