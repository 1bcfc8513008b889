"""A worker's end of the transport: orders and events over a socket, vectors and states in shared memory."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue

from attrs import define, field

from sigma_kernel.contracts import (
    Checkpoint,
    Commit,
    ComputeOrder,
    GroupEvent,
    GroupOrder,
    JoinOrder,
    Position,
    Provide,
    ShardPart,
    ShardSum,
    WorkerFailed,
)
from sigma_operator_processes.board import Board
from sigma_operator_processes.link import Link, Packet, StateReply, StateRequest, encode

LINGER = 4.0  # seconds
POLL = 0.1  # seconds after which messages that could not be sent are tried again
ASK_AGAIN = 0.02  # seconds after the answer that a state is not there


@define(eq=False)
class ProcessesChannel:
    """Carry orders, events, vectors and states of one worker; a thread of its own receives.

    Args:
        worker: The number of the worker.
        link: The connection to the operator.
        linger: Seconds after the end of the operator in which the worker may end by itself.
    """

    worker: int
    link: Link
    linger: float = LINGER
    _orders: SimpleQueue[GroupOrder | None] = field(factory=SimpleQueue, init=False)
    _board: Board | None = field(default=None, init=False)
    _provided: tuple[Commit, Provide] | None = field(default=None, init=False)
    _replies: SimpleQueue[StateReply] = field(factory=SimpleQueue, init=False)
    _request: Commit | None = field(default=None, init=False)  # that is not answered

    def open(self, packets: Sequence[Packet]) -> None:
        """Take packets that have arrived already, and begin to receive others."""
        threading.Thread(target=self._receive, args=[packets], name="sigma-receive", daemon=True).start()

    # -- messages ------------------------------------------------------------------------------------------------------
    def orders(self, seconds: float) -> Iterable[GroupOrder]:
        """Return the orders that have arrived; wait at most so long. Raises ConnectionError if the operator is gone."""
        orders = list[GroupOrder]()
        try:
            while (order := self._orders.get(timeout=0 if orders else max(seconds, 0.0))) is not None:
                orders.append(order)
        except Empty:
            return orders
        self._orders.put(None)  # for the next call
        if not orders:
            raise ConnectionError("the connection to the operator is closed")
        return orders

    def send(self, events: Sequence[GroupEvent]) -> None:
        """Send events without waiting; nothing happens if the operator is gone."""
        for event in events:
            self.link.send(encode(event))

    # -- vectors -------------------------------------------------------------------------------------------------------
    def sum(
        self, order: ComputeOrder, position: Position, parts: Mapping[int, ShardPart], count: int, seconds: float
    ) -> ShardSum | None:
        """Return the sum over ``count`` shards; None if some are missing yet, or the generation has ended."""
        board = self._board
        if board is None or board.generation != order.generation:
            time.sleep(min(seconds, 0.001))
            return None
        shards = sum(map(len, order.shards.values()))
        return board.sum(position, parts, count, shards, seconds, lambda: self._board is not board or self.link.closed)

    # -- states --------------------------------------------------------------------------------------------------------
    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to members that fetch it from this worker, in place of any earlier one."""
        self._provided = commit, state

    def fetch(self, order: JoinOrder, seconds: float) -> Checkpoint | None:
        """Return the state of the order's commit from its donor, or from the operator if that is None."""
        deadline = time.monotonic() + seconds
        while not self.link.closed:
            if self._request != order.commit:
                self._request = order.commit
                route = -1 if order.donor is None else order.donor
                self.link.send(encode(StateRequest(self.worker, order.commit), route))
            try:
                reply = self._replies.get(timeout=max(deadline - time.monotonic(), 0.0))
            except Empty:
                return None
            if reply.commit != order.commit:
                continue  # of an earlier request
            self._request = None
            if reply.state is not None:
                return reply.state
            time.sleep(min(ASK_AGAIN, max(deadline - time.monotonic(), 0.0)))
        return None

    # -- the thread that receives --------------------------------------------------------------------------------------
    def _receive(self, packets: Sequence[Packet]) -> None:
        try:
            while not self.link.closed:
                for packet in packets:
                    self._take(packet)
                self.link.wait(POLL)
                packets = self.link.receive()
        except Exception:
            self.send([WorkerFailed(self.worker, traceback.format_exc())])
            raise
        finally:
            self._orders.put(None)
        time.sleep(self.linger)
        os._exit(1)  # serve() has not returned since the operator is gone

    def _take(self, packet: Packet) -> None:
        message = packet.load()
        if isinstance(message, StateRequest):
            self._answer(message)
        elif isinstance(message, StateReply):
            self._replies.put(message)
        else:
            if isinstance(message, JoinOrder):
                self._join(message, packet.extra_descriptors)
            self._orders.put(message)

    def _join(self, order: JoinOrder, segments: Sequence[int]) -> None:
        """Take the board of a new generation, in place of the last; a repeated order has the same one."""
        if self._board is not None and order.generation <= self._board.generation:
            for descriptor in segments:
                os.close(descriptor)
            return
        self._board = Board(order.generation, order.members, self.worker, *segments)
        self._request = None  # the donor may be another one

    def _answer(self, request: StateRequest) -> None:
        commit, state = self._provided or (None, None)
        held = state() if state is not None and commit == request.commit else None
        self.link.send(encode(StateReply(request.commit, held), request.worker))
