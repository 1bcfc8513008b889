"""Courses: the training of one call of ``run`` or ``fit``, from beginning to end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial

from attrs import define, field

from sigma_kernel.contracts.running import Goals, Lifecycle, Trainer
from sigma_kernel.errors import error_text
from sigma_kernel.summary import Summary


@define(eq=False)
class Course:
    """The training of several trainers, each in its own thread; or of one with ``goals``, in the calling thread.

    A trainer that fails stops the others.  While the course is ``attended``, it waits for a command to go on instead,
    and the others pause.
    """

    trainers: Sequence[Trainer]
    log: Callable[[str], object]
    goals: Goals | None = None
    attended: Callable[[], bool] = lambda: False
    claimed: list[Lifecycle] = field(factory=list, init=False)
    prepared: threading.Event = field(factory=threading.Event, init=False)
    begun: threading.Event = field(factory=threading.Event, init=False)  # or failed to begin
    signals: deque[int] = field(factory=deque, init=False)  # that were sent to end it
    failure: BaseException | None = field(default=None, init=False)  # the first, unless its trainer has continued
    _threads: dict[threading.Thread, threading.Event] = field(factory=dict, init=False)  # with their ends

    @property
    def underway(self) -> bool:
        """Return whether a trainer is still at work."""
        return any(trainer.is_busy for trainer in self.claimed)

    def prepare(self) -> None:
        """Prepare the trainers; raise a SigmaError for one that is training, or has no end condition."""
        for trainer in self.trainers:
            trainer.prepare()
            trainer.lifecycle.check_free()
            if self.goals in (None, (None, None)):
                trainer.lifecycle.check_end()
        self.prepared.set()

    def claim(self) -> None:
        """Let the threads answer all requests to their trainers from now on."""
        for trainer in self.trainers:
            trainer.lifecycle.claim(self._start_later(trainer) if self.goals is None else None)
            self.claimed.append(trainer.lifecycle)

    def _start_later(self, trainer: Trainer) -> threading.Thread:
        end = threading.Event()  # not join(): interrupted by Ctrl-C, it takes the thread for ended
        thread = threading.Thread(target=self._work, args=(trainer, end), name=f"sigma-{trainer.name}", daemon=True)
        self._threads[thread] = end
        return thread

    def train(self) -> None:
        """Train until the end of all; raise the first error."""
        if self.goals is not None:
            try:
                self.claimed[0].train(self.goals)
            finally:
                self.claimed[0].leave()
        for thread in self._threads:
            thread.start()
        for end in self._threads.values():
            while not end.wait(0.05):  # signal handlers run in between
                if len(self.signals) > 1:  # Python has dropped the handler's exception, as in a destructor
                    raise KeyboardInterrupt
        if self.failure is not None:
            raise self.failure

    def _work(self, trainer: Trainer, end: threading.Event) -> None:
        try:
            trainer.lifecycle.train_or_replay(partial(self._wait, trainer))
        except BaseException as error:  # raised again by train(), in its caller's thread
            self.fail(error)
            self.stop()
        finally:
            if trainer.lifecycle.is_busy:  # it failed before training began
                trainer.lifecycle.leave(failed=True)
            end.set()

    def _wait(self, trainer: Trainer, error: Exception) -> bool:
        """Wait, after a failure, for a command to continue; return whether one came before all clients left."""
        if not self.attended():
            return False
        failed = trainer.lifecycle
        self.fail(error)
        for other in (other for other in self.claimed if other.status == "running"):
            other.post_pause()
        self.log(f"{trainer.name}: failed: {error_text(error)} It is paused: rewind, set values and continue, or stop.")
        while failed.is_waiting and self.attended():
            failed.answer()
        self.failure = self.failure if failed.status == "failed" or self.failure is not error else None
        return failed.status != "failed"

    def fail(self, error: BaseException) -> None:
        """Keep an error, if it is the first."""
        self.failure = self.failure or error

    # these do not wait, and take no lock: signal handlers call them
    def stop(self, interrupted: bool = False) -> None:
        """End every trainer at work."""
        for trainer in self.claimed:
            if trainer.is_busy:
                trainer.post_stop(interrupted)

    def save(self) -> None:
        """Save a checkpoint of every trainer at work."""
        for trainer in self.claimed:
            if trainer.is_busy:
                trainer.post_save()


@define(eq=False)
class TrainingHandle:
    """Training in the background: wait for its end, get its summary, or stop it; other commands go to the environment.

    ``stop()`` ends training after the current burst, and returns once that was applied.
    """

    _name: str
    stop: Callable[[], None] = field(repr=False)
    _future: Future[Summary]

    @property
    def has_ended(self) -> bool:
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
