"""A worker of a group: one thread answers orders, another one computes.

The first thread owns no arrays, the second one no messages. Whatever either learns passes through one state machine,
:class:`GroupMember`, under a lock.
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from sigma_kernel.contracts.grouping import (
    Channel,
    Commit,
    ComputeOrder,
    GroupEvent,
    GroupOrder,
    JoinOrder,
    StateSent,
    Tick,
    WorkerComputed,
    WorkerFailed,
    WorkerJoined,
    WorkerLost,
)
from sigma_training.group.member import (
    CopyState,
    DropState,
    EndWorker,
    GroupMember,
    MemberAction,
    PromoteState,
    RunBurst,
    SendState,
)
from sigma_training.workers.exchange import WAIT, BurstDropped
from sigma_training.workers.replica import Replica

MOST = 0.2  # seconds between two ticks


@define(eq=False)
class GroupWorker:
    """Follow the orders of a group by a replica.

    Args:
        number: The number of the worker.
        channel: Its end of the transport.
        make: Makes the replica, in the thread that computes.
        patience: Seconds without an order after which the operator is gone.
    """

    number: int
    channel: Channel
    make: Callable[[], Replica]
    patience: float = 5.0
    _member: GroupMember = field(init=False)
    _gate: threading.RLock = field(factory=threading.RLock, init=False)
    _tasks: queue.SimpleQueue[Callable[[], None] | None] = field(factory=queue.SimpleQueue, init=False)
    _copied: JoinOrder | None = field(default=None, init=False)  # the last order whose state is copied
    _replica: Replica | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._member = GroupMember(self.number, self.patience)

    def run(self) -> None:
        """Work until the end: answer orders in this thread, compute in another."""
        threading.Thread(target=self._compute, name="sigma-replica", daemon=True).start()
        try:
            while not self._member.ended:
                for order in self.channel.orders(min(MOST, self.patience / 8)):
                    self._tell(order)
                self._tell(Tick(time.monotonic()))
        except ConnectionError as error:
            self._tell(WorkerLost(self.number, str(error)))
        finally:
            self._tasks.put(None)

    # -- messages ------------------------------------------------------------------------------------------------------
    def _tell(self, message: GroupOrder | GroupEvent) -> None:
        """Pass a message through the state machine; send its events, and queue its actions."""
        with self._gate:
            answers = self._member.on(message)
            self.channel.send([answer for answer in answers if isinstance(answer, GroupEvent)])
            for answer in answers:
                if isinstance(answer, MemberAction):
                    ACTIONS[type(answer)](self, answer)

    def _copy(self, action: CopyState) -> None:
        if action.order != self._copied:  # else it is being copied
            self._copied = action.order
            self._tasks.put(partial(self._join, action.order))

    def _burst(self, action: RunBurst) -> None:
        self._tasks.put(partial(self._run, action.order))

    def _promote(self, action: PromoteState) -> None:
        self._tasks.put(lambda: self._current_replica.promote())
        commit = self._member.commit
        assert commit is not None  # that of the state which is promoted
        self._tasks.put(partial(self._provide, commit))

    def _drop(self, action: DropState) -> None:
        self._tasks.put(lambda: self._current_replica.drop())

    def _send(self, action: SendState) -> None:
        self._tasks.put(partial(self._send_state, action))

    def _end(self, action: EndWorker) -> None:
        return

    # -- the thread that computes --------------------------------------------------------------------------------------
    @property
    def _current_replica(self) -> Replica:
        assert self._replica is not None  # it is made before any task
        return self._replica

    def _compute(self) -> None:
        """Make the replica, and do tasks, until the end; the first error is reported, and ends the run."""
        try:
            self._replica = self.make()
            while (task := self._tasks.get()) is not None:
                task()
        except ConnectionError as error:
            self._tell(WorkerLost(self.number, str(error)))
        except BaseException:
            self._tell(WorkerFailed(self.number, traceback.format_exc()))

    def _join(self, order: JoinOrder) -> None:
        """Copy the state of an order, unless a later one came meanwhile."""
        while self._is_wanted(order.generation):
            if (state := self.channel.fetch(order, WAIT)) is not None:
                self._current_replica.adopt(state)
                self._provide(order.commit)
                self._tell(WorkerJoined(self.number, order.generation))
                return

    def _run(self, order: ComputeOrder) -> None:
        """Compute a burst, unless it was dropped meanwhile."""
        dropped = lambda: not self._is_wanted(order.generation)  # noqa: E731
        try:
            commit, digest, records = self._current_replica.compute(order, self.number, self.channel, dropped)
        except BurstDropped:
            return
        self._tell(WorkerComputed(self.number, commit, digest, records))

    def _is_wanted(self, generation: int) -> bool:
        with self._gate:
            return self._member.generation == generation and not self._member.ended

    def _provide(self, commit: Commit) -> None:
        """Give the committed state to those who join."""
        saved = self._current_replica.committed.saved
        self.channel.provide(commit, lambda: saved)

    def _send_state(self, action: SendState) -> None:
        saved = self._current_replica.committed.saved
        self.channel.send([StateSent(self.number, action.commit, saved)])


ACTIONS: dict[type[MemberAction], Callable[[GroupWorker, Any], None]] = {
    CopyState: GroupWorker._copy,
    RunBurst: GroupWorker._burst,
    PromoteState: GroupWorker._promote,
    DropState: GroupWorker._drop,
    SendState: GroupWorker._send,
    EndWorker: GroupWorker._end,
}
