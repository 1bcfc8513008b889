"""The queue of requests to the training thread.

Only one thread at a time changes a session: the training thread between bursts, or, without training, the caller.
Other threads queue requests, which are answered at the next boundary with a result or an exception.  Waiting for the
``result`` of a request first syncs its row of the journal to the disk; the training thread does not wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.contracts.commanding import Command
from sigma_kernel.errors import SigmaStateError


@frozen
class Request:
    """A request to the training thread, and a future for its result."""

    act: Callable[[], Any]
    command: Command | None = None
    durable: Callable[[], Exception | None] = lambda: None  # waits until the journal is on the disk; returns the error
    future: Future[Any] = field(factory=Future)

    def result(self) -> Any:
        """Return the result once its journal row is on the disk, or raise the exception."""
        result = self.future.result()
        if (error := self.durable()) is not None:
            raise error
        return result

    def answer(self) -> None:
        """Run the request, and set its result or exception."""
        try:
            self.future.set_result(self.act())
        except Exception as error:
            self.future.set_exception(error)


@define(eq=False)
class Queue:
    """The requests to one session, and the thread that answers them."""

    _waiting: deque[Request] = field(factory=deque, init=False)
    _posted: deque[Request] = field(factory=deque, init=False)  # without a lock
    _thread: threading.Thread | None = field(default=None, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)

    @property
    def busy(self) -> bool:
        """Return whether a thread trains or is about to."""
        return self._thread is not None

    def has_requests(self, but: Command | None = None) -> bool:
        """Return whether a request waits for an answer, ``but`` for those of one command."""
        queued = [*self._waiting, *self._posted]
        return any(but is None or request.command is not but for request in queued)

    def claim(self, thread: threading.Thread | None = None, again: bool = False) -> None:
        """Make a thread, by default the calling one, the training thread, which answers requests from now on.

        Raises SigmaStateError if there is one already, unless the thread claims ``again``.
        """
        with self._gate:
            if self.busy and not again:
                raise SigmaStateError("training: it is in progress already. Wait for its end, or stop it first.")
            if not self.busy:
                self._posted.clear()  # at the very end of the last training
            self._thread = thread or threading.current_thread()

    def release(self) -> None:
        """Release the training thread: answer the queued requests, then let any thread act."""
        with self._gate:
            self._thread = None
            while self._waiting:
                self._waiting.popleft().answer()

    def submit(self, request: Request) -> Request:
        """Answer a request at once if this thread may act, or queue it for the training thread."""
        with self._gate:
            if self._thread in (None, threading.current_thread()):
                request.answer()
            else:
                self._waiting.append(request)
                self._gate.notify()
        return request

    def post(self, request: Request) -> None:
        """Queue a request without taking a lock, as a signal handler must; a thread that waits notices it later."""
        self._posted.append(request)

    def serve(self, over: Callable[[], bool]) -> None:
        """Answer the requests that are queued now, not later ones; none once training is over."""
        while self._posted:
            self._waiting.append(self._posted.popleft())
        for _ in range(len(self._waiting)):
            if not over():  # requests after a stop are answered once training has ended
                self._waiting.popleft().answer()

    def wait(self) -> None:
        """Wait for a request, at most half a second."""
        with self._gate:
            if not self._waiting:
                self._gate.wait(0.5)

    def awaits(self, command: str) -> bool:
        """Return whether a command of a name is queued."""
        queued = [request.command for request in [*self._waiting, *self._posted]]
        return any(x is not None and x.command == command for x in queued)
