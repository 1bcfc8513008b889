"""The local scope of a worker: a state machine of orders and results, without clock, thread, array or engine.

A worker holds at most two states: the committed one, and beside it the result of a burst that is not committed. The
engine does what the actions say, and reports by events, which pass through the machine too: it drops those of
generations that have ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.contracts.grouping import (
    ApplyOrder,
    Commit,
    ComputeOrder,
    GroupEvent,
    GroupOrder,
    JoinOrder,
    KeepOrder,
    LeaveOrder,
    MemberOrder,
    PauseOrder,
    PingOrder,
    StartOrder,
    Tick,
    WorkerAlive,
    WorkerComputed,
    WorkerFailed,
    WorkerJoined,
    WorkerLost,
    WorkerReady,
)
from sigma_kernel.settings import gt
from sigma_training.group.silence import Silence


@frozen
class MemberAction:
    """What the engine of a worker is to do."""


@frozen
class CopyState(MemberAction):
    """Get the state of ``order.commit`` from its donor, or from the operator; then report :class:`WorkerJoined`."""

    order: JoinOrder


@frozen
class RunBurst(MemberAction):
    """Compute a burst beside the committed state; then report :class:`WorkerComputed`."""

    order: ComputeOrder


@frozen
class PromoteState(MemberAction):
    """Let the state beside the committed one replace it."""


@frozen
class DropState(MemberAction):
    """Stop the burst that runs, and drop the state beside the committed one."""


@frozen
class SendState(MemberAction):
    """Send the committed state to the operator."""

    commit: Commit


@frozen
class EndWorker(MemberAction):
    """End the process, without a word to the group."""

    reason: str


Answers = list[GroupEvent | MemberAction]


@define(eq=False)
class GroupMember:
    """Follow the orders of a group; end if the operator is gone.

    Args:
        worker: The number of the worker.
        patience: Seconds without an order after which the operator is gone.
    """

    worker: int
    patience: float = field(default=5.0, validator=gt(0.0))

    generation: int = field(default=-1, init=False)
    joined: bool = field(default=False, init=False)
    commit: Commit | None = field(default=None, init=False)  # the committed state
    beside: WorkerComputed | None = field(default=None, init=False)  # the state beside it, as reported
    running: ComputeOrder | None = field(default=None, init=False)
    _wanted: Commit | None = field(default=None, init=False)  # the state to join with
    failure: WorkerFailed | None = field(default=None, init=False)  # repeated until the group lets the worker leave
    ended: bool = field(default=False, init=False)
    _silence: Silence = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._silence = Silence(self.patience)
        self._silence.hear(self.worker)

    def on(self, message: GroupOrder | GroupEvent) -> Answers:
        """Return events for the group and actions for the engine that follow from an order or an event of the engine.

        The engine reports ``WorkerJoined``, ``WorkerComputed`` and ``WorkerFailed``, time by ``Tick``, and by
        ``WorkerLost`` that the connection to the operator is closed.
        """
        if self.ended:
            return []
        if isinstance(message, GroupOrder):
            self._silence.hear(self.worker)
        if isinstance(message, MemberOrder) and not isinstance(message, JoinOrder):
            if not self.joined or message.generation != self.generation:
                return []
            return [*self._promote(message.commit), *REACTIONS[type(message)](self, message)]
        return REACTIONS[type(message)](self, message)

    # -- orders --------------------------------------------------------------------------------------------------------
    def _on_start(self, order: StartOrder) -> Answers:
        return [WorkerReady(self.worker)] if self.generation < 0 else []

    def _on_ping(self, order: PingOrder) -> Answers:
        return [WorkerAlive(self.worker)]

    def _on_leave(self, order: LeaveOrder) -> Answers:
        return self._end(order.reason)

    def _on_join(self, order: JoinOrder) -> Answers:
        if order.generation < self.generation:
            return []
        actions = self._begin_generation(order) if order.generation > self.generation else []
        if self.joined:
            return [*actions, WorkerJoined(self.worker, self.generation)]
        self.commit = None  # the copy replaces it, also if another generation begins meanwhile
        return [*actions, WorkerAlive(self.worker), CopyState(order)]

    def _on_compute(self, order: ComputeOrder) -> Answers:
        if order.commit != self.commit:
            return []  # of an earlier burst
        if self.beside is not None:
            return [self.beside]
        if self.running is not None:
            return [WorkerAlive(self.worker)]
        self.running = order
        return [WorkerAlive(self.worker), RunBurst(order)]

    def _on_keep(self, order: KeepOrder) -> Answers:
        return [SendState(order.commit)] if order.commit == self.commit else []

    def _on_pause(self, order: PauseOrder) -> Answers:
        return [WorkerAlive(self.worker)]

    # -- what the engine reports ---------------------------------------------------------------------------------------
    def _on_joined(self, event: WorkerJoined) -> Answers:
        if event.generation != self.generation or self.joined:
            return []
        self.commit, self.joined = self._wanted, True  # copied by the engine
        return [event]

    def _on_computed(self, event: WorkerComputed) -> Answers:
        if self.running is None or event.commit.generation != self.generation:
            return []
        self.running, self.beside = None, event
        return [event]

    def _on_failed(self, event: WorkerFailed) -> Answers:
        self.failure = event
        return [event]

    def _on_tick(self, event: Tick) -> Answers:
        self._silence.tick(event.seconds)
        if self._silence.silent():
            return self._end(f"no word from the operator for {self.patience:g} s")
        pending = WorkerReady(self.worker) if self.generation < 0 else self.failure
        return [] if pending is None else [pending]

    def _on_disconnected(self, event: WorkerLost) -> Answers:
        return self._end(event.reason)

    # -- states --------------------------------------------------------------------------------------------------------
    def _begin_generation(self, order: JoinOrder) -> Answers:
        """Drop what is not committed; hold the state of the order already, or want it."""
        actions = self._promote(order.commit)
        if self.running is not None or self.beside is not None:
            actions.append(DropState())
        self.generation, self.running, self.beside = order.generation, None, None
        self._wanted, self.joined = order.commit, self.commit == order.commit
        return actions

    def _promote(self, commit: Commit) -> Answers:
        """Let the result of a burst be the committed state, if an order says that it is."""
        if self.beside is None or self.beside.commit != commit:
            return []
        self.commit, self.beside = commit, None
        return [PromoteState()]

    def _end(self, reason: str) -> Answers:
        self.ended, self.running = True, None
        return [EndWorker(reason)]


REACTIONS: dict[type[GroupOrder | GroupEvent], Callable[[GroupMember, Any], Answers]] = {
    StartOrder: GroupMember._on_start,
    PingOrder: GroupMember._on_ping,
    LeaveOrder: GroupMember._on_leave,
    JoinOrder: GroupMember._on_join,
    ComputeOrder: GroupMember._on_compute,
    ApplyOrder: lambda member, order: [],
    KeepOrder: GroupMember._on_keep,
    PauseOrder: GroupMember._on_pause,
    WorkerJoined: GroupMember._on_joined,
    WorkerComputed: GroupMember._on_computed,
    WorkerFailed: GroupMember._on_failed,
    WorkerLost: GroupMember._on_disconnected,
    Tick: GroupMember._on_tick,
}
