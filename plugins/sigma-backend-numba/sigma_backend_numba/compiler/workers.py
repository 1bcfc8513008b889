"""Threads in which LLVM works.

Signals interrupt the main thread alone.  An interrupt between a call of LLVM and the line of llvmlite behind it would
let llvmlite destroy an object twice, which ends the process.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, ParamSpec, TypeVar

from attrs import define, field

_P = ParamSpec("_P")
_R = TypeVar("_R")


@define(eq=False)
class Workers:
    """Threads that finish what they have begun, however often their caller is interrupted."""

    count: int
    _pool: ThreadPoolExecutor = field(init=False)
    _calls: list[Future[Any]] = field(factory=list, init=False)

    @_pool.default
    def _(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.count, "sigma-llvm")

    def submit(self, function: Callable[_P, _R], *given: _P.args, **named: _P.kwargs) -> Future[_R]:
        """Begin a call as soon as a thread is free."""
        call = self._pool.submit(function, *given, **named)
        self._calls.append(call)
        return call

    def __enter__(self) -> Workers:
        """Return the threads."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Wait for all calls; after an error, for those that have begun."""
        interrupt: BaseException | None = None
        while not all(call.done() for call in self._calls):
            try:
                if error or interrupt:
                    for call in self._calls:
                        call.cancel()
                wait(self._calls)
            except BaseException as raised:
                interrupt = raised
        self._pool.shutdown(wait=False)
        if interrupt is not None:
            raise interrupt


def run_apart(function: Callable[_P, _R], *given: _P.args, **named: _P.kwargs) -> _R:
    """Return the result of a call in another thread, which no signal interrupts."""
    with Workers(1) as workers:
        return workers.submit(function, *given, **named).result()
