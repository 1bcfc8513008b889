"""Threads in which LLVM works.

Signals interrupt the main thread alone.  An interrupt between a call of LLVM and the line of llvmlite behind it would
let llvmlite destroy an object twice, which ends the process.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from attrs import define, field

_P = ParamSpec("_P")
_R = TypeVar("_R")


@define(eq=False)
class Workers:
    """Threads that finish what they have begun, however often their caller is interrupted.

    Those of an executor would refuse to work for a thread that runs on when the main thread has ended.
    """

    count: int
    _calls: list[Future[Any]] = field(factory=list, init=False)
    _waiting: SimpleQueue[Callable[[], None] | None] = field(factory=SimpleQueue, init=False)
    _threads: list[Thread] = field(factory=list, init=False)

    def submit(self, function: Callable[_P, _R], *given: _P.args, **named: _P.kwargs) -> Future[_R]:
        """Begin a call as soon as a thread is free."""
        call = Future[_R]()
        self._calls.append(call)
        self._waiting.put(partial(_run, call, partial(function, *given, **named)))
        if len(self._threads) < self.count:
            self._threads.append(Thread(target=self._work, name="sigma-llvm", daemon=True))
            self._threads[-1].start()
        return call

    def _work(self) -> None:
        while (run := self._waiting.get()) is not None:
            run()

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
                wait([call for call in self._calls if not call.done()])
            except BaseException as raised:
                interrupt = raised
        for _ in self._threads:
            self._waiting.put(None)
        if interrupt is not None:
            raise interrupt


def _run(call: Future[_R], function: Callable[[], _R]) -> None:
    """Run a call, unless it was cancelled."""
    if not call.set_running_or_notify_cancel():
        return
    try:
        call.set_result(function())
    except BaseException as error:
        call.set_exception(error)


def run_apart(function: Callable[_P, _R], *given: _P.args, **named: _P.kwargs) -> _R:
    """Return the result of a call in another thread, which no signal interrupts."""
    with Workers(1) as workers:
        return workers.submit(function, *given, **named).result()
