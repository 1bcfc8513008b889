"""Train members of a study at the same time, each in a process."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import define, evolve, field

from sigma_kernel.signals import ENDING, Signals
from sigma_run.study.folder import StudyFolder
from sigma_run.study.plan import LOST, Member, read_results
from sigma_run.study.pool import ProcessPool

ATTEMPTS = 3  # to train a member whose process was lost


class MemberQueue(Protocol):
    """What decides which member is trained next."""

    def take(self) -> Member | None:
        """Return a member to train now; None if there is none before another has ended."""

    def settle(self, member: Member) -> Member:
        """Take the results of a member, return what is kept of them; the status ``lost`` is that of its process."""


@define(eq=False)
class PlannedMembers:
    """A queue of members in their order; one whose process was lost is trained again before the others."""

    waiting: deque[Member]
    attempts: int = ATTEMPTS
    _lost: dict[str, int] = field(factory=dict, init=False)

    def take(self) -> Member | None:
        """Return the next member."""
        return self.waiting.popleft() if self.waiting else None

    def settle(self, member: Member) -> Member:
        """Queue a lost member again; after so many attempts, it has failed."""
        if member.status != LOST:
            return member
        lost = self._lost[member.folder] = self._lost.get(member.folder, 0) + 1
        if lost < self.attempts:
            self.waiting.appendleft(member)
            return member
        return evolve(member, status="failed", why=f"its process was lost {lost} times")


@define(eq=False)
class ParallelTraining:
    """Train the members of a queue, as many at a time as the pool has processes; only this process writes the study.

    ``say`` is told about members that begin and end.
    """

    folder: StudyFolder
    pool: ProcessPool
    queue: MemberQueue
    begins: Callable[[Member], object]
    ends: Callable[[Member], object]
    _signals: list[int] = field(factory=list, init=False)

    def train_all(self) -> int:
        """Train all members; return the exit code.

        The failure of a member is recorded, and the others go on; a signal ends the study after checkpoints of the
        members that train.
        """
        with Signals(self._heed):
            try:
                self._train_members()
            finally:
                self.pool.close()
        if self._signals:
            self.folder.note("interrupted")
            return 128 + self._signals[0]
        return self.folder.conclude()

    def _train_members(self) -> None:
        while True:
            while self.pool.has_room and not self._signals and (member := self.queue.take()) is not None:
                self.begins(member)
                self.folder.update(evolve(member, status="running", why=""), "begin")
                process = self.pool.begin(member)
                if self._signals:  # since the member was taken, when there was no process to forward them to
                    process.signal(signal.SIGTERM)
            if not self.pool.busy:
                return
            self._settle(*self.pool.wait())

    def _settle(self, member: Member, results: Mapping[str, Any] | None) -> None:
        """Record the results of a member; None if its process was lost."""
        if self._signals and (results is None or results.get("status") == "interrupted"):
            self.folder.update(read_results(member, results or {"status": "interrupted"}), "end", status="interrupted")
            return
        if results is None or results.get("status") == "interrupted":  # by somebody else
            settled, event = self.queue.settle(evolve(member, status=LOST)), "lost"
        else:
            settled = self.queue.settle(read_results(member, results))
            event = "failed" if settled.status == "failed" else "end"
        self.folder.update(settled, event, **({"status": settled.status} if event == "end" else {}))
        self.ends(settled)

    def _heed(self, number: int) -> None:
        """End the members that train; the signal of a process that is still importing ends it without a message."""
        if number in ENDING:
            self._signals.append(number)
            self.pool.signal(signal.SIGTERM)
        else:
            self.pool.signal(number)


def train_planned(
    folder: StudyFolder, parallel: int, begins: Callable[[Member], object], ends: Callable[[Member], object]
) -> int:
    """Train the members of a study that have not ended; return the exit code."""
    left = deque(member for member in folder.study.members if not member.has_ended)
    return ParallelTraining(folder, ProcessPool(folder.path, parallel), PlannedMembers(left), begins, ends).train_all()
