"""The operator's end of the transport: engage ranks as workers, carry orders and events, and notice deaths."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import (
    Blueprint,
    Commit,
    GroupEvent,
    GroupOrder,
    JoinOrder,
    LeaveOrder,
    Provide,
    StartOrder,
    WorkerLost,
)
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, error_text, warn
from sigma_operator_mpi.packets import End, JoinWithPeers, RankAddress, StateAnswer, StateQuery
from sigma_operator_mpi.pool import Ended, RankPool

GRACE = 2.0  # seconds in which workers end by themselves, once the transport is closed
LEAVE = 5.0  # seconds in which a worker ends, once it is to leave
SHORT = 2.0  # seconds after which a run ends that has too few ranks, and is saved by then
POLL = 0.01


@define(eq=False)
class MpiTransport:
    """Run workers on ranks of the job.

    Args:
        pool: The ranks.
        at_least: How many workers the group needs.
    """

    pool: RankPool
    at_least: int = 1
    _blueprint: bytes = field(default=b"", init=False)
    _workers: dict[int, RankAddress] = field(factory=dict, init=False)
    _started: set[int] = field(factory=set, init=False)
    _leaving: dict[int, float] = field(factory=dict, init=False)  # when a worker is ended that is to leave
    _events: SimpleQueue[GroupEvent] = field(factory=SimpleQueue, init=False)
    _provided: tuple[Commit, Provide] | None = field(default=None, init=False)
    _short: float | None = field(default=None, init=False)  # since when there are too few ranks
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    # -- the contract --------------------------------------------------------------------------------------------------
    def start(self, blueprint: Blueprint, workers: int) -> None:
        """Get ready for workers; raise SigmaConfigError for too few ranks, or if the blueprint cannot be pickled."""
        ranks = self.pool.alive
        advice = f"operator 'mpi': {{}}, and the job has {ranks} ranks beside rank 0. Run `mpiexec -n {{}} ...`."
        if self.at_least > ranks:
            raise SigmaConfigError(advice.format(f"at least {self.at_least} workers are needed", self.at_least + 1))
        if workers > ranks:
            warn(advice.format(f"{workers} workers are wanted", workers + 1))
        try:
            self._blueprint = pickle.dumps(blueprint, protocol=5)
        except Exception as error:
            raise SigmaConfigError(
                f"operator 'mpi': what is trained cannot be sent to workers: {error_text(error)}. Define its classes"
                " and functions by name in a module that can be imported."
            ) from error

    def send(self, orders: Sequence[GroupOrder]) -> None:
        """Send orders without waiting; a free rank becomes the worker of a :class:`StartOrder`, once there is one."""
        with self._lock:
            for order in orders:
                if isinstance(order, StartOrder) and order.worker not in self._started:
                    self._start(order.worker)
                elif (address := self._workers.get(order.worker)) is not None:
                    if isinstance(order, LeaveOrder):
                        self._leaving.setdefault(order.worker, time.monotonic() + LEAVE)
                    self.pool.tell(address, self._complete(order))

    def events(self, seconds: float) -> Iterable[GroupEvent]:
        """Return the events that have arrived; wait at most so long for the first.

        Raises SigmaStateError if training can never go on, as too few ranks are left.
        """
        self._end_overdue()
        self._expect_ranks()
        events = list[GroupEvent]()
        try:
            while True:
                events.append(self._events.get(timeout=0 if events else max(seconds, 0.0)))
        except Empty:
            return events

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to workers that fetch it from the operator, in place of any earlier one."""
        self._provided = commit, state

    def close(self) -> None:
        """End all workers, whose ranks are free then; may be called twice."""
        with self._lock:
            for address in self._workers.values():
                self.pool.tell(address, End())
        deadline = time.monotonic() + GRACE
        while self._workers and time.monotonic() < deadline:
            time.sleep(POLL)
        with self._lock:
            for address in self._workers.values():
                self.pool.end(address)

    @property
    def addresses(self) -> dict[int, RankAddress]:
        """Return where the workers are that run."""
        return {**self._workers}

    # -- orders --------------------------------------------------------------------------------------------------------
    def _start(self, worker: int) -> None:
        address = self.pool.engage(worker, self._blueprint, partial(self._receive, worker))
        if address is not None:
            self._started.add(worker)
            self._workers[worker] = address

    def _complete(self, order: GroupOrder) -> GroupOrder | JoinWithPeers:
        """Return the message of an order: one to join has the addresses of the members."""
        if not isinstance(order, JoinOrder):
            return order
        others = [member for member in order.members if member != order.worker]
        return JoinWithPeers(order, {member: self._workers[member] for member in others if member in self._workers})

    def _end_overdue(self) -> None:
        """End workers that were to leave and have not."""
        with self._lock:
            now = time.monotonic()
            for worker in [worker for worker, deadline in self._leaving.items() if deadline < now]:
                del self._leaving[worker]
                self.pool.end(self._workers[worker])

    def _expect_ranks(self) -> None:
        if self.pool.failure is not None:
            raise SigmaStateError("operator 'mpi': its thread has failed.") from self.pool.failure
        if (alive := self.pool.alive) >= self.at_least:
            self._short = None
            return
        self._short = self._short or time.monotonic()
        if time.monotonic() > self._short + SHORT:
            raise SigmaStateError(
                f"operator 'mpi': {alive} ranks are left that compute, of at least {self.at_least}. `sigma resume` goes"
                " on with others."
            )

    # -- the thread of the port ----------------------------------------------------------------------------------------
    def _receive(self, worker: int, body: Any) -> None:
        if isinstance(body, StateQuery):
            own, state = self._provided or (None, None)
            held = state() if state is not None and own == body.commit else None
            self.pool.tell(body.sender, StateAnswer(body.commit, held))
        elif isinstance(body, Ended):
            with self._lock:
                self._workers.pop(worker, None)
                self._leaving.pop(worker, None)
            self._events.put(WorkerLost(worker, body.reason))
        else:
            self._events.put(body)
