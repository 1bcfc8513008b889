"""The thread pool: a burst takes the workers that are free.

The caller only waits.  Signals reach the main thread alone: if it took part in a burst, an interrupt between two calls
could leave the others waiting at a barrier forever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from attrs import define, field

from sigma_backend_numba.compiler.processor import cores

Part = Callable[[int, int], int]  # (thread number, number of threads) -> steps done


class Worker(threading.Thread):
    """A thread that runs one call after another."""

    def __init__(self) -> None:
        super().__init__(name="sigma-numba", daemon=True)
        self._call: Callable[[], int] = int
        self._result = 0
        self._finished = True
        self._given, self._done = threading.Lock(), threading.Lock()
        self._given.acquire()
        self.start()

    def begin(self, call: Callable[[], int]) -> None:
        """Start a call."""
        self._call, self._finished = call, False
        self._done.acquire(blocking=False)
        self._given.release()

    def wait(self) -> int:
        """Wait for the end of the call, however often the wait is interrupted; then re-raise the interrupt."""
        caught: BaseException | None = None
        while not self._finished:
            try:
                self._done.acquire(timeout=1.0)  # an interrupt may have swallowed the notification
            except BaseException as interrupt:
                caught = interrupt
        if caught is not None:
            raise caught
        return self._result

    def result(self, call: Callable[[], int]) -> int:
        """Run a call and return its result; it has ended when this method returns or raises."""
        try:
            self.begin(call)
        finally:
            self.wait()
        return self._result

    def run(self) -> None:
        """Run calls forever."""
        while True:
            self._given.acquire()
            self._result = self._call()
            self._finished = True
            if self._done.locked():
                self._done.release()


@define(eq=False)
class ThreadPool:
    """The workers of this process, at most ``most``."""

    most: int = field(factory=cores)
    _free: list[Worker] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def take(self, wanted: int) -> list[Worker]:
        """Take at most ``wanted`` free workers; there may be none."""
        with self._lock:
            new = max(0, min(wanted - len(self._free), self.most - self._count))
            self._free += [Worker() for _ in range(new)]
            self._count += new
            cut = max(0, len(self._free) - wanted)
            taken, self._free = self._free[cut:], self._free[:cut]
            return taken

    def give_back(self, workers: list[Worker]) -> None:
        """Release workers."""
        with self._lock:
            self._free += workers

    def abandon(self) -> None:
        """Forget all workers: threads do not survive a fork."""
        self._free, self._count, self._lock = [], 0, threading.Lock()

    def run(self, part: Part, threads: int) -> int:
        """Run ``part(0, n)`` to ``part(n - 1, n)`` on n free workers, at most ``threads``; return the first result."""
        workers = self.take(threads) if threads > 1 else []
        try:
            if len(workers) < 2:
                return part(0, 1)
            return workers[0].result(lambda: _run_parts(part, workers))
        finally:
            self.give_back(workers)


def _run_parts(part: Part, workers: list[Worker]) -> int:
    """Run all parts; the first worker leads."""
    count = len(workers)
    for number, worker in enumerate(workers[1:], 1):
        worker.begin(lambda number=number: part(number, count))  # type: ignore[misc]
    done = part(0, count)
    for worker in workers[1:]:
        worker.wait()
    return done


POOL = ThreadPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.abandon)
