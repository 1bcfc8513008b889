"""Run calls that may block in a worker thread, charged to the work budget of all clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from attrs import define, field

from sigma_monitor_control.budget import PROCESS, WorkBudget

Task = tuple[Callable[[], Any], Future[Any]]


@define(eq=False)
class Aside:
    """Do one thing after another in a daemon thread, which begins with the first: it never keeps a process alive.

    After each it rests, as the threads do that talk to clients: what clients have computed is work for them, too.
    """

    budget: WorkBudget = PROCESS
    _tasks: SimpleQueue[Task | None] = field(factory=SimpleQueue, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def do(self, act: Callable[[], Any]) -> Future[Any]:
        """Queue a call; return its future, which can be cancelled until the call begins."""
        future = Future[Any]()
        self._tasks.put((act, future))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="sigma-control-reader", daemon=True)
            self._thread.start()
        return future

    def end(self) -> None:
        """End the thread after its current call; queued calls are dropped."""
        if self._thread is not None:
            self._tasks.put(None)

    def _work(self) -> None:
        while self._do_next():
            continue

    def _do_next(self) -> bool:
        """Do the next call, unless it was cancelled, and rest; return whether there may be more. It keeps no call."""
        if (task := self._tasks.get()) is None:
            return False
        act, future = task
        if future.set_running_or_notify_cancel():
            began = time.thread_time()
            try:
                future.set_result(act())
            except Exception as error:  # raised by result()
                future.set_exception(error)
            time.sleep(self.budget.spend_thread(began))
        return True
