"""The operator's end of the transport: start workers, carry orders and events, pass on states, notice deaths."""

from __future__ import annotations

import selectors
import socket
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
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
    WorkerFailed,
    WorkerLost,
)
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, error_text
from sigma_operator_processes.board import BoardSegments
from sigma_operator_processes.link import Packet, StateReply, StateRequest, encode
from sigma_operator_processes.output import OutputThread
from sigma_operator_processes.workers import WorkerProcess, start_worker

GRACE = 2.0  # seconds in which a worker ends by itself, once its connection is closed
LEAVE = 5.0  # seconds in which a worker ends, once it is to leave
POLL = 0.1  # seconds after which messages that could not be sent are tried again


@define(eq=False)
class ProcessesTransport:
    """Run workers as processes of this machine; threads of its own start them, receive, and pass on their output.

    Args:
        devices: GPUs, of which each worker sees the one that the fewest others see; all, if there are none.
    """

    devices: Sequence[str] = ()
    _blueprint: Packet | None = field(default=None, init=False)
    _workers: dict[int, WorkerProcess] = field(factory=dict, init=False)
    _started: set[int] = field(factory=set, init=False)
    _to_start: SimpleQueue[int] = field(factory=SimpleQueue, init=False)
    _events: SimpleQueue[GroupEvent | None] = field(factory=SimpleQueue, init=False)
    _generation: int = field(default=-1, init=False)
    _board: BoardSegments | None = field(default=None, init=False)
    _provided: tuple[Commit, Provide] | None = field(default=None, init=False)
    _encoded: tuple[Commit, Packet] | None = field(default=None, init=False)  # what is provided, once somebody asked
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _selector: selectors.BaseSelector = field(factory=selectors.DefaultSelector, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _output: OutputThread = field(factory=OutputThread, init=False)
    _wakers: tuple[socket.socket, socket.socket] | None = field(default=None, init=False)
    _failure: BaseException | None = field(default=None, init=False)
    _closing: bool = field(default=False, init=False)

    # -- the contract --------------------------------------------------------------------------------------------------
    def start(self, blueprint: Blueprint, workers: int) -> None:
        """Get ready for workers; raise SigmaConfigError if the blueprint cannot be pickled."""
        try:
            self._blueprint = encode(blueprint)
        except Exception as error:
            raise SigmaConfigError(
                f"operator 'processes': what is trained cannot be sent to workers: {error_text(error)}. Define its"
                " classes and functions by name in a module that can be imported."
            ) from error
        self._wakers = socket.socketpair()
        self._selector.register(self._wakers[0], selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="sigma-workers", daemon=True)
        self._output.start()
        self._thread.start()

    def send(self, orders: Sequence[GroupOrder]) -> None:
        """Send orders without waiting; start the worker of a :class:`StartOrder`."""
        with self._lock:
            for order in orders:
                if isinstance(order, StartOrder) and order.worker not in self._started:
                    self._started.add(order.worker)
                    self._to_start.put(order.worker)
                elif (worker := self._workers.get(order.worker)) is not None:
                    self._send_order(worker, order)
        self._wake()

    def events(self, seconds: float) -> Iterable[GroupEvent]:
        """Return the events that have arrived; wait at most so long for the first."""
        events = list[GroupEvent]()
        with suppress(Empty):  # nothing more has arrived
            while (event := self._events.get(timeout=0 if events else max(seconds, 0.0))) is not None:
                events.append(event)
        if self._failure is not None and not events:
            raise SigmaStateError("operator 'processes': its thread has failed.") from self._failure
        return events

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to workers that fetch it from the operator, in place of any earlier one."""
        self._provided = commit, state

    def close(self) -> None:
        """End all workers, and release everything; may be called twice."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
        if self._thread is not None:
            self._wake()
            self._thread.join()
            self._output.close(GRACE)
        self._selector.close()
        for resource in (self._board, self._blueprint, self._encoded and self._encoded[1], *(self._wakers or ())):
            if resource is not None:
                resource.close()

    @property
    def processes(self) -> dict[int, int]:
        """Return the numbers of the processes that run, by worker."""
        return {number: worker.process.pid for number, worker in [*self._workers.items()]}

    # -- orders --------------------------------------------------------------------------------------------------------
    def _send_order(self, worker: WorkerProcess, order: GroupOrder) -> None:
        if isinstance(order, LeaveOrder):
            worker.hurry(LEAVE)
        if not isinstance(order, JoinOrder):
            worker.link.send(encode(order))
        elif order.generation >= self._generation:  # else it is late
            worker.link.send(encode(order, attached=self._board_of(order).copy()))

    def _board_of(self, order: JoinOrder) -> BoardSegments:
        """Return the shared memory of a generation, which is created for the first order of it."""
        if self._board is None or order.generation > self._generation:
            if self._board is not None:
                self._board.close()
            self._board, self._generation = BoardSegments.create(len(order.members)), order.generation
        return self._board

    def _wake(self) -> None:
        if self._wakers is not None:
            try:
                self._wakers[1].send(b"\0", socket.MSG_DONTWAIT)
            except (BlockingIOError, OSError):  # it is awake, or closed
                return

    # -- the thread ----------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while not self._closing:
                self._start_workers()
                for key, _ in self._selector.select(POLL):
                    self._read(key.data)
                self._look_after()
            self._end_all()
        except BaseException as error:
            self._failure = error
            self._events.put(None)
            self._end_all()

    def _start_workers(self) -> None:
        while not self._to_start.empty():
            number = self._to_start.get()
            assert self._blueprint is not None
            try:
                worker = start_worker(number, self._blueprint, self._choose_device())
            except OSError as error:
                self._events.put(WorkerLost(number, f"its process could not be started: {error_text(error)}"))
                continue
            self._output.add(number, worker.take_output())
            self._selector.register(worker.link.socket, selectors.EVENT_READ, worker)
            self._workers[number] = worker

    def _choose_device(self) -> str | None:
        used = [worker.device for worker in self._workers.values()]
        return min(self.devices, key=used.count, default=None)

    def _read(self, worker: WorkerProcess | None, is_last: bool = False) -> None:
        if worker is None:
            assert self._wakers is not None
            self._wakers[0].recv(4096)
            return
        for packet in worker.link.receive():
            self._take(worker, packet)
        if worker.link.closed or is_last:
            self._lose(worker, GRACE)

    def _look_after(self) -> None:
        """Send what waits; lose workers that have ended, and end those that were to leave and have not."""
        for worker in [*self._workers.values()]:
            worker.link.flush()
            if worker.has_ended():  # though a process that it has started holds the connection
                self._read(worker, is_last=True)
            elif worker.is_overdue():
                self._lose(worker, 0.0)

    def _take(self, worker: WorkerProcess, packet: Packet) -> None:
        if packet.route >= 0:
            self._pass_on(worker, packet)
            return
        try:
            message: Any = packet.load()
        except Exception:
            message = WorkerFailed(worker.number, traceback.format_exc())
        if isinstance(message, StateRequest):
            worker.link.send(self._provide(message.commit))
        else:
            self._events.put(message)

    def _pass_on(self, worker: WorkerProcess, packet: Packet) -> None:
        """Pass a request or reply on to another worker; answer a request to one that is gone."""
        target = self._workers.get(packet.route)
        if target is not None:
            target.link.send(Packet(packet.body, packet.descriptors, packet.sizes))
        elif not packet.sizes and isinstance(message := packet.load(), StateRequest):
            worker.link.send(encode(StateReply(message.commit, None)))
        else:
            packet.close()

    def _provide(self, commit: Commit) -> Packet:
        """Return the reply to a request for the operator's state; its arrays are copied once for all that ask."""
        own, state = self._provided or (None, None)
        if state is None or own != commit:
            return encode(StateReply(commit, None))
        if self._encoded is None or self._encoded[0] != commit:
            if self._encoded is not None:
                self._encoded[1].close()
            self._encoded = commit, encode(StateReply(commit, state()))
        return self._encoded[1].copy()

    def _lose(self, worker: WorkerProcess, seconds: float) -> None:
        self._selector.unregister(worker.link.socket)
        reason = worker.end(seconds)
        del self._workers[worker.number]
        self._events.put(WorkerLost(worker.number, reason))

    def _end_all(self) -> None:
        """Close all connections; end the workers that do not end for that."""
        for worker in self._workers.values():
            worker.link.shut()
        deadline = time.monotonic() + GRACE
        for worker in self._workers.values():
            worker.end(max(deadline - time.monotonic(), 0.0))
        self._workers.clear()
