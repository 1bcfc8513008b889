"""Who may act when: the training thread between bursts, and nobody else.

Other threads leave commands and questions; the training thread answers them at a boundary, a command with the moment
at which it acted, or the reason why it was refused.  While nothing trains, they are answered at once, by whoever asks.
Whoever waits for the ``result`` of a command brings its row to the disk first; the training thread does not wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.errors import SigmaStateError
from sigma_kernel.training.commands.types import Command


@frozen
class Ticket:
    """What is to be done where nothing moves, and the answer to come."""

    act: Callable[[], Any]
    command: Command | None = None
    answer: Future[Any] = field(factory=Future)
    kept: Callable[[], Exception | None] = lambda: None

    def result(self) -> Any:
        """Return what acting came to, once what it wrote into the journal is on the disk; raise why it is not."""
        result = self.answer.result()
        if (error := self.kept()) is not None:
            raise error
        return result


@define(eq=False)
class Control:
    """The gate of one session."""

    act: Callable[[Command], Any]
    kept: Callable[[], Exception | None] = lambda: None  # return when the journal is on the disk, or why it is not
    status: str = "prepared"
    over: bool = False
    _waiting: deque[Ticket] = field(factory=deque, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)

    @property
    def busy(self) -> bool:
        """Return whether a thread trains, or is about to."""
        return self._thread is not None

    def claim(self, thread: threading.Thread | None = None, again: bool = False) -> None:
        """Take a thread, by default the calling one, as the training thread: it answers from now on.

        Raises SigmaStateError if there is one already, unless it is this one ``again``.
        """
        with self._gate:
            if self.busy and not again:
                raise SigmaStateError("training: it is under way already. Wait for its end, or stop it first.")
            self._thread, self.over, self.status = thread or threading.current_thread(), False, "running"

    def end(self, status: str, behind: bool = False) -> None:
        """Give the training thread back, and answer whoever still waits; neither where more is to be done again."""
        with self._gate:
            self.status = status
            if not behind:
                self._thread = None
            while self._waiting and not behind:
                self._answer(self._waiting.popleft())

    def boundary(self) -> bool:
        """Answer what waits, and wait here while paused; return whether training goes on."""
        while True:
            for _ in range(len(self._waiting)):  # not for ever: who asks on and on must not hold up training
                if not self.over:  # what comes after a stop comes after the end
                    self._answer(self._waiting.popleft())
            if self.over:
                return False
            if self.status != "paused":
                return True
            with self._gate:
                if not self._waiting:
                    self._gate.wait(0.5)

    def hurry(self) -> None:
        """End training at the next boundary; safe to be called by a signal's handler."""
        self.over = True

    def send(self, command: Command) -> Ticket:
        """Leave a command; its ticket is answered with what acting returned, or with the error."""
        return self._submit(Ticket(partial(self.act, command), command, kept=self.kept))

    def ask(self, question: Callable[[], Any], kept: Callable[[], Exception | None] = lambda: None) -> Any:
        """Return the answer to a question about the state, asked where nothing moves, once what it did is ``kept``."""
        return self._submit(Ticket(question, kept=kept)).result()

    def awaits(self, kind: type[Command]) -> bool:
        """Return whether a command of a kind waits for a boundary."""
        return any(isinstance(ticket.command, kind) for ticket in [*self._waiting])

    def _submit(self, ticket: Ticket) -> Ticket:
        with self._gate:
            if self._thread in (None, threading.current_thread()):
                self._answer(ticket)
            else:
                self._waiting.append(ticket)
                self._gate.notify()
        return ticket

    def _answer(self, ticket: Ticket) -> None:
        try:
            ticket.answer.set_result(ticket.act())
        except Exception as error:  # whoever asked is told; training goes on
            ticket.answer.set_exception(error)
