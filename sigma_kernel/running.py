"""Run courses: from the first, which opens the run and starts the monitors, to the last, which closes them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from attrs import define, field

from sigma_kernel.contracts.running import Lifecycle
from sigma_kernel.courses import Course, TrainingHandle
from sigma_kernel.errors import SigmaStateError, error_text
from sigma_kernel.messages import Messages
from sigma_kernel.participants import Participants
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.records import RunRecords
from sigma_kernel.signals import SAVING, Signals
from sigma_kernel.summary import Summary
from sigma_kernel.threads import in_thread
from sigma_kernel.watchers import Watchers

GRACE = 2.0  # seconds that monitors get to end
MOMENT = 0.5  # seconds for the same after an abort: a monitor gives the terminal back


class RunOwner(Protocol):
    """Whose run this is."""

    signals: list[int]  # that mean the end, also those that came after training
    catalogue: Catalogue
    plugins: Sequence[str]  # that take part in the run by name
    replaying: bool

    def open_run(self) -> None:
        """Create the stored run if one is wanted and there is none, and let prepared trainers write to it."""

    def start_monitors(self, progress: bool | None) -> None:
        """Start the monitors that do not watch yet."""

    def stop(self) -> None:
        """End training after the current burst."""

    def summary(self) -> Summary:
        """Return the summary of the run so far."""


@define(eq=False, kw_only=True)
class Runner:
    """Run the courses of an environment: the first opens files and monitors, the last closes them."""

    owner: RunOwner
    records: RunRecords
    watchers: Watchers
    messages: Messages[str]
    signal: int | None = field(default=None, init=False)  # what interrupted the last run
    _ended: str = field(default="", init=False)  # how training ended: stopped or failed
    _active: list[Course] = field(factory=list, init=False)  # what calls of run() and fit() train now
    _concluding: list[Course] = field(factory=list, init=False)  # of whose end plugins are told now
    _gate: threading.RLock = field(factory=threading.RLock, init=False)  # the first opens files, the last closes them
    _handles: list[TrainingHandle] = field(factory=list, init=False)  # of training in the background
    _failure: BaseException | None = field(default=None, init=False)

    # -- its state -----------------------------------------------------------------------------------------------------
    @property
    def is_active(self) -> bool:
        """Return whether a course has begun and not ended."""
        return bool(self._active)

    @property
    def is_aborted(self) -> bool:
        """Return whether the last run was aborted: trainers may not answer any more."""
        return isinstance(self._failure, KeyboardInterrupt)

    @property
    def state(self) -> str:
        """Return running, paused, failed (also while it waits) or stopped; empty before the first course."""
        courses = [*self._active]
        if not courses:
            return self._ended
        statuses = {str(trainer.status) for course in courses for trainer in course.claimed}
        if any(course.failure for course in courses):
            return "failed"
        return "paused" if statuses & {"running", "paused"} == {"paused"} else "running"

    @property
    def failure(self) -> str:
        """Return why training failed, as a sentence; empty if it did not."""
        failure = next((course.failure for course in [*self._active] if course.failure), self._failure)
        return "" if failure is None or self.is_aborted else error_text(failure)

    @property
    def participants(self) -> Participants:
        """Return the plugins that take part in the run by name; none in a replay."""
        names = () if self.owner.replaying else self.owner.plugins
        return Participants(self.owner.catalogue, names, self.messages.log)

    def await_begin(self) -> None:
        """Wait for courses that are about to begin."""
        for course in [*self._active]:
            course.begun.wait()

    # -- courses -------------------------------------------------------------------------------------------------------
    def run(self, course: Course, progress: bool | None) -> Summary:
        """Run a course in the calling thread, under the handlers of signals; return the summary."""
        with Signals(partial(self._heed, course)):
            self._begin(course, progress)
            return self._complete(course)

    def run_for_program(self, course: Course, progress: bool | None) -> None:
        """Run a course; then pass on the signal that ended it, as it was meant for the program."""
        try:
            self.run(course, progress)
        except KeyboardInterrupt:
            if not course.signals:
                raise
        if course.signals:
            signal.raise_signal(course.signals[0])

    def run_in_background(self, course: Course, progress: bool | None, name: str) -> TrainingHandle:
        """Begin a course; return a handle of its training, which continues in its own thread."""
        self._begin(course, progress)
        summary = in_thread(partial(self._complete, course), f"sigma-{name}")
        self._handles.append(TrainingHandle(name, self.owner.stop, summary))
        return self._handles[-1]

    def _begin(self, course: Course, progress: bool | None) -> None:
        """Prepare and claim the trainers of a course, open the files and start the monitors; or leave no trace."""
        with self._gate:
            if not self._active:
                self._failure, self.signal = None, None
            self._active.append(course)
        try:
            self.participants.check()
            course.prepare()
            with self._gate:
                self.owner.open_run()
                course.claim()
                if course.signals:  # that came while the files were opened
                    course.stop(interrupted=True)
                self.owner.start_monitors(progress)
            self.participants.begin(**self._describe_course(course))
        except BaseException:
            for trainer in course.claimed:
                trainer.leave()
            self._end(course)
            self._close_files()
            raise
        finally:
            course.begun.set()

    def _complete(self, course: Course) -> Summary:
        """Train and save; return the summary, or raise the first error."""
        summary = None
        try:
            course.train()
            if self.records.run is not None:
                self._save(course.claimed)
        except BaseException as error:
            course.fail(error)
        self._end(course)
        self.wait_for_checkpoints()
        try:
            if self.records.run is not None and course.failure is None:
                for trainer in course.claimed:
                    trainer.conclude()
        except BaseException as error:  # such as an interruption: the run has its summary all the same
            course.fail(error)
        try:
            with self._gate:
                self.records.leave(summary := self.owner.summary())
        except SigmaStateError as error:
            course.fail(error)
            self._end(course)
        self._concluding.append(course)
        interruption = self.participants.end(course.failure, summary, **self._describe_course(course))
        self._concluding.remove(course)
        self._close_files()
        if failure := course.failure or interruption:
            raise failure
        assert summary is not None  # without one there is a failure
        return summary

    def _describe_course(self, course: Course) -> dict[str, Any]:
        """Return what plugins learn of a course."""
        return {"environment": self.owner, "trainers": [trainer.name for trainer in course.trainers]}

    def _save(self, trainers: Iterable[Lifecycle]) -> None:
        """Save what trainers have reached that were not stopped from outside; a stop has saved the others."""
        requests = [trainer.save_end() for trainer in trainers]
        self.records.flush()
        for request in requests:
            if request is not None:
                request.result()

    def _end(self, course: Course) -> None:
        """Count a course as ended, with its failure."""
        with self._gate:
            self._active = [other for other in self._active if other is not course]
            self._failure = self._failure or course.failure
            if course.begun.is_set() and not self._active:
                self._ended = "failed" if self._failure else "stopped"

    def _close_files(self) -> None:
        """Release the run folder and end the monitors, unless another course needs them."""
        with self._gate:
            if self._active:
                return
            self.records.release()
            watch = self.watchers.take()
        watch.end(MOMENT if self.is_aborted else GRACE)

    # -- its end -------------------------------------------------------------------------------------------------------
    def _heed(self, course: Course, number: int) -> None:
        """Act on a signal, in its handler: queue a command for the trainers of a course, or abort."""
        if number in SAVING:
            there = self.records.run is not None
            self.messages.log("saving a checkpoint" if there else "nothing is saved, as no run folder is written")
            if there:
                course.save()
            return
        self.owner.signals.append(number)
        if course.failure and not course.signals:  # it waits for a command: the exit code is the failure's
            course.stop(interrupted=True)
            return
        course.signals.append(number)
        if course.underway or not course.begun.is_set():  # else it has ended already
            self.signal = course.signals[0]
            if len(course.signals) > 1 or not course.prepared.is_set():
                raise KeyboardInterrupt
            self.messages.log("interrupted: finishing the step, then saving; interrupt again to abort")
            course.stop(interrupted=True)
        elif course in self._concluding:
            if len(course.signals) > 1:
                raise KeyboardInterrupt
            self.messages.log("interrupted: training has ended and is saved; interrupt again to end what a plugin does")

    def wait_for_checkpoints(self) -> None:
        """Wait until all checkpoints are written, unless the run was aborted."""
        if not self.is_aborted:
            self.records.wait()

    def wait_for_handles(self) -> None:
        """Wait for the end of all training in the background."""
        for handle in self._handles:
            handle.wait()
