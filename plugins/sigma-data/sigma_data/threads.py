"""Threads for work whose libraries release the lock of the interpreter."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(act: Callable[[T], R], items: Sequence[T], most: int | None = None) -> list[R]:
    """Return what a function returns for each item, in their order; the first error of that order is raised.

    There are at most so many threads, by default one for each processor.
    """
    threads = min(len(items), count_processors(), most or len(items))
    if threads < 2:
        return [*map(act, items)]
    with ThreadPoolExecutor(threads, "sigma-data") as pool:
        return [*pool.map(act, items)]


def map_ahead(act: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield what a function returns for each item, in their order, while threads are at work on the next ones.

    Items are read in the thread of the caller; at most one more than there are threads is held.
    """
    threads = count_processors()
    if threads < 2:
        yield from map(act, items)
        return
    ahead = deque[Future[R]]()
    with ThreadPoolExecutor(threads, "sigma-data") as pool:
        for item in items:
            ahead.append(pool.submit(act, item))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
