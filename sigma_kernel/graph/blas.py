"""BLAS on one thread, so that bits do not depend on the number of cores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock
from types import TracebackType

from threadpoolctl import ThreadpoolController


class _BlasLimit(AbstractContextManager[None]):
    """Any number of contexts at once, in any threads: the first one sets the limit, and the last one lifts it."""

    def __init__(self) -> None:
        self._lock, self._depth = Lock(), 0
        self._before: list[tuple[Callable[[int], object], int]] = []  # how many threads each library may use otherwise

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._before = [(limit, count()) for count, limit in _find_blas()]
                for limit, _ in self._before:
                    limit(1)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                for limit, before in self._before:
                    limit(before)


@cache
def _find_blas() -> list[tuple[Callable[[], int], Callable[[int], object]]]:
    """Return how to count and to limit the threads of each BLAS library of the process; Apple's Accelerate has no way.

    OpenBLAS is called itself: of the threads of a process, threadpoolctl lets one alone limit it.
    """
    functions = list[tuple[Callable[[], int], Callable[[int], object]]]()
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        own = [f"{before}openblas_%s_num_threads{after}" for before in ("", "scipy_") for after in ("", "64_", "_64")]
        name = next((name for name in own if hasattr(library.dynlib, name % "set")), None)
        count, limit = (name and getattr(library.dynlib, name % verb) for verb in ("get", "set"))
        functions.append((count or library.get_num_threads, limit or library.set_num_threads))
    return functions


_limit = _BlasLimit()


def limit_blas() -> AbstractContextManager[None]:
    """Return a context in which BLAS, that of NumPy included, computes on one thread.

    On several, the order of its sums depends on how many there are, so that bits would depend on the number of cores;
    next to other work, its threads spend most of their time waiting for each other.
    """
    return _limit
