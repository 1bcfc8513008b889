"""Courses: what one call of ``run`` or ``fit`` trains, from its beginning to its end."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial

from attrs import define, field

from sigma_kernel.contracts.commanding import Command
from sigma_kernel.errors import error_text
from sigma_kernel.training.commands.pause import Pause
from sigma_kernel.training.commands.stop import StopTraining
from sigma_kernel.training.runs.summary import Summary
from sigma_kernel.training.session.progress import Phase
from sigma_kernel.training.session.session import Session
from sigma_kernel.training.trainer import Goals, Trainer


@define(eq=False)
class Course:
    """The training of several trainers, each in a thread of its own; or of one with ``goals``, in the calling thread.

    A trainer that fails stops the others.  While the course is ``attended``, it waits for a command to go on instead,
    and the others pause.
    """

    trainers: Sequence[Trainer]
    goals: Goals | None = None
    attended: Callable[[], bool] = lambda: False
    sessions: list[Session] = field(factory=list, init=False)  # those claimed
    prepared: threading.Event = field(factory=threading.Event, init=False)
    begun: threading.Event = field(factory=threading.Event, init=False)  # or failed to begin
    signals: deque[int] = field(factory=deque, init=False)  # that were sent to end it
    failure: BaseException | None = field(default=None, init=False)  # the first one, unless its trainer has gone on
    _threads: dict[threading.Thread, threading.Event] = field(factory=dict, init=False)  # with their ends

    @property
    def underway(self) -> bool:
        """Return whether a trainer is still at work."""
        return any(session.queue.busy for session in self.sessions)

    def prepare(self) -> None:
        """Prepare the trainers; raise a SigmaError for one that is training, or that nothing would end."""
        for trainer in self.trainers:
            trainer.prepare()
            trainer.check_free()
            if self.goals in (None, (None, None)):
                trainer.session.loop.check_end()
        self.prepared.set()

    def claim(self) -> None:
        """Let the threads answer all requests to their trainers from now on."""
        for trainer in self.trainers:
            trainer.session.queue.claim(self._own(trainer) if self.goals is None else None)
            self.sessions.append(trainer.session)

    def _own(self, trainer: Trainer) -> threading.Thread:
        end = threading.Event()  # not join(): interrupted by Ctrl-C, it takes the thread for ended
        thread = threading.Thread(target=self._work, args=(trainer, end), name=f"sigma-{trainer.name}", daemon=True)
        self._threads[thread] = end
        return thread

    def train(self) -> None:
        """Train until the end of all; raise the first error."""
        if self.goals is not None:
            try:
                self.trainers[0].train(*self.goals)
            finally:
                self.sessions[0].loop.leave()
        for thread in self._threads:
            thread.start()
        for end in self._threads.values():
            while not end.wait(0.05):  # signal handlers run in between
                continue
        if self.failure is not None:
            raise self.failure

    def _work(self, trainer: Trainer, end: threading.Event) -> None:
        try:
            trainer.relive(partial(self._waits, trainer.session))
        except BaseException as error:  # raised again by train(), in its caller's thread
            self.fail(error)
            self.tell(StopTraining())
        finally:
            if trainer.session.queue.busy:  # it failed before training began
                trainer.session.loop.leave(Phase.FAILED)
            end.set()

    def _waits(self, session: Session, error: Exception) -> bool:
        """Wait, after a failure, for a command to go on; return whether there was one before everybody had left."""
        if not self.attended():
            return False
        self.fail(error)
        for other in (other for other in self.sessions if other.status == "running"):
            other.post(Pause())
        session.recorder.log(
            f"{session.setup.name}: failed: {error_text(error)} It waits: rewind, set, go on; or stop it."
        )
        while session.waits and self.attended():
            session.queue.serve(lambda: not session.waits)
            if session.waits:
                session.queue.wait()
        self.failure = self.failure if session.status == "failed" or self.failure is not error else None
        return session.status != "failed"

    def fail(self, error: BaseException) -> None:
        """Keep an error, if it is the first."""
        self.failure = self.failure or error

    def tell(self, command: Command) -> None:
        """Queue a command for every trainer at work, without waiting; signal handlers may call this."""
        for session in self.sessions:
            if session.queue.busy:
                session.post(command)


@define(eq=False)
class TrainingHandle:
    """Training in the background: wait for its end, get its summary, or stop it; other commands go to the environment.

    ``stop()`` ends training after the current burst, and returns once that was applied.
    """

    _name: str
    stop: Callable[[], None] = field(repr=False)
    _future: Future[Summary]

    @property
    def done(self) -> bool:
        """Return whether training has ended."""
        return self._future.done()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most ``timeout`` seconds; return whether training has ended."""
        return bool(wait([self._future], timeout).done)

    def result(self, timeout: float | None = None) -> Summary:
        """Wait for the end, and return the summary, or raise what training raised.

        Raises TimeoutError after ``timeout`` seconds; training continues.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"{self._name}: has not ended within {timeout:g} seconds. Training continues.")
        return self._future.result()


def seen_by_people() -> bool:
    """Return whether standard error is a terminal, or the output of a notebook."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
