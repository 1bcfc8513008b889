"""A worker's end of the transport: what its rank receives, and what the threads of the worker take from it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

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
)
from sigma_kernel.slices import Mailbox, Packet, PartsPacket, SlicePacket, SliceSum, SumKey
from sigma_operator_mpi.packets import End, JoinWithPeers, Mail, RankAddress, StateAnswer, StateQuery
from sigma_operator_mpi.port import Port

ASK_AGAIN = 0.02  # seconds after the answer that a state is not there


@define(eq=False)
class MpiChannel:
    """Carry orders, events, vectors and states of one worker.

    Args:
        worker: The number of the worker.
        address: Where it is.
        port: The port of the rank.
    """

    worker: int
    address: RankAddress
    port: Port
    _mailbox: Mailbox = field(factory=Mailbox, init=False)
    _orders: SimpleQueue[GroupOrder | None] = field(factory=SimpleQueue, init=False)
    _join: JoinWithPeers | None = field(default=None, init=False)  # the last order to join
    _sum: SliceSum | None = field(default=None, init=False)
    _provided: tuple[Commit, Provide] | None = field(default=None, init=False)
    _replies: SimpleQueue[StateAnswer] = field(factory=SimpleQueue, init=False)
    _request: JoinOrder | None = field(default=None, init=False)  # that is not answered

    # -- what the rank receives ----------------------------------------------------------------------------------------
    def receive(self, body: Any) -> None:
        """Take a message; the operator's end of the channel is one."""
        if isinstance(body, PartsPacket | SlicePacket):
            self._mailbox.put(body)
        elif isinstance(body, StateQuery):
            commit, state = self._provided or (None, None)
            held = state() if state is not None and commit == body.commit else None
            self._tell(body.sender, StateAnswer(body.commit, held))
        elif isinstance(body, StateAnswer):
            self._replies.put(body)
        elif isinstance(body, End):
            self._orders.put(None)
        else:
            self._orders.put(self._join_group(body) if isinstance(body, JoinWithPeers) else body)

    def _join_group(self, message: JoinWithPeers) -> JoinOrder:
        if self._join is None or message.order.generation >= self._join.order.generation:
            self._join = message
            self._mailbox.begin_generation(message.order.generation)
        return message.order

    def _tell(self, address: RankAddress, body: Any) -> None:
        self.port.send(address.rank, Mail(address.engagement, body))

    @property
    def _operator(self) -> RankAddress:
        return RankAddress(0, self.address.engagement)

    # -- the contract --------------------------------------------------------------------------------------------------
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
            raise ConnectionError("the operator has ended")
        return orders

    def send(self, events: Sequence[GroupEvent]) -> None:
        """Send events without waiting; nothing happens if the operator is gone."""
        for event in events:
            self._tell(self._operator, event)

    def sum(
        self, order: ComputeOrder, position: Position, parts: Mapping[int, ShardPart], count: int, seconds: float
    ) -> ShardSum | None:
        """Return the sum over ``count`` shards; None if some are missing yet, or the generation has ended."""
        join = self._join
        if join is None or join.order.generation != order.generation:
            time.sleep(min(seconds, 0.001))
            return None
        key, deadline = SumKey(order.generation, position), time.monotonic() + seconds
        if self._sum is None or self._sum.key != key:
            self._begin_sum(join, key, parts, count)
        assert self._sum is not None
        while not self._sum.is_complete:
            packets = self._mailbox.take(key, deadline)
            if not packets:
                return None
            for packet in packets:
                self._sum.receive(packet)
        return self._sum.result()

    def _begin_sum(self, join: JoinWithPeers, key: SumKey, parts: Mapping[int, ShardPart], count: int) -> None:
        members = sorted(join.order.members)

        def send(rank: int, packet: Packet) -> None:
            if (peer := join.peers.get(members[rank])) is not None:  # else it is lost, and the generation has ended
                self._tell(peer, packet)

        self._mailbox.begin_sum(key)
        self._sum = SliceSum(key, members.index(self.worker), len(members), count, send)
        self._sum.begin(parts)

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to members that fetch it from this worker, in place of any earlier one."""
        self._provided = commit, state

    def fetch(self, order: JoinOrder, seconds: float) -> Checkpoint | None:
        """Return the state of the order's commit from its donor, or from the operator if that is None."""
        deadline = time.monotonic() + seconds
        if self._request != order and not self._ask(order):
            time.sleep(min(ASK_AGAIN, max(seconds, 0.0)))
            return None
        while True:
            try:
                reply = self._replies.get(timeout=max(deadline - time.monotonic(), 0.0))
            except Empty:
                return None
            if reply.commit != order.commit:
                continue  # of an earlier request
            self._request = None
            if reply.state is None:
                time.sleep(min(ASK_AGAIN, max(deadline - time.monotonic(), 0.0)))
            return reply.state

    def _ask(self, order: JoinOrder) -> bool:
        """Ask for the state of an order; return whether it is known whom."""
        peers = {} if self._join is None else self._join.peers
        donor = self._operator if order.donor is None else peers.get(order.donor)
        if donor is None:
            return False
        self._tell(donor, StateQuery(order.commit, self.address))
        self._request = order
        return True
