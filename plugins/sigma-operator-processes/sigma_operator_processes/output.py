"""Pass on what workers print, line by line, with the number of the worker."""

from __future__ import annotations

import os
import selectors
import sys
import threading
from contextlib import suppress

from attrs import define, field

POLL = 0.2  # seconds
LONGEST = 1 << 16  # bytes of a line without an end


@define(eq=False)
class OutputThread:
    """Read the output of workers, in a thread of its own: a terminal that stops holds up nothing else."""

    _selector: selectors.BaseSelector = field(factory=selectors.DefaultSelector, init=False)
    _rests: dict[int, bytes] = field(factory=dict, init=False)  # lines without an end, by descriptor
    _ending: bool = field(default=False, init=False)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sigma-output", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def add(self, worker: int, descriptor: int) -> None:
        """Read the output of a worker from a pipe, and close that at its end."""
        self._rests[descriptor] = b""
        self._selector.register(descriptor, selectors.EVENT_READ, worker)

    def close(self, seconds: float) -> None:
        """Read what is left of workers that have ended; wait at most so long."""
        self._ending = True
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._ending or self._rests:
            ready = self._selector.select(POLL)
            for key, _ in ready:
                self._read(key.fd, key.data)
            if self._ending and not ready:
                break
        for descriptor in [*self._rests]:
            self._end(descriptor)
        self._selector.close()

    def _read(self, descriptor: int, worker: int) -> None:
        data = os.read(descriptor, LONGEST)
        *lines, rest = (self._rests[descriptor] + data).split(b"\n")
        if len(rest) >= LONGEST:
            lines, rest = [*lines, rest], b""
        self._rests[descriptor] = rest
        print_lines(worker, lines)
        if not data:
            self._end(descriptor)

    def _end(self, descriptor: int) -> None:
        """Close a pipe, and print what is left; another process may hold its other end open."""
        worker = self._selector.unregister(descriptor).data
        if rest := self._rests.pop(descriptor):
            print_lines(worker, [rest])
        os.close(descriptor)


def print_lines(worker: int, lines: list[bytes]) -> None:
    """Write lines of a worker to standard error, if there is one."""
    text = "".join(f"[worker {worker}] {line.decode(errors='replace')}\n" for line in lines)
    with suppress(OSError, ValueError, AttributeError):  # of a stream that is closed, or missing
        sys.stderr.write(text)
        sys.stderr.flush()
