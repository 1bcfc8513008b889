"""Threads for work whose libraries release the lock of the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
