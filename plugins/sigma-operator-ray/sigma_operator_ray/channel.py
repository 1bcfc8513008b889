"""A worker's end of the transport: what its actor receives, and what the threads of the worker take from it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue

import numpy as np
from attrs import define, evolve, field, frozen

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
    WorkerCut,
)
from sigma_kernel.slices import Mailbox, Packet, SliceSum, SumKey
from sigma_operator_ray.engine import PENDING, Handle, Reference, call, find_cut, wait_for
from sigma_operator_ray.links import Links

LEAST_PAUSE, LONGEST_PAUSE = 2e-5, 1e-3  # seconds until a packet is written again that its reader had no room for
ASK_AGAIN = 0.02  # seconds after the answer that a state is not there


@frozen
class JoinMessage:
    """An order to join, with the actors of the other members, and the operator's state if it has that of the order.

    The reference is in a list, so that Ray does not resolve it before the message is delivered.
    """

    order: JoinOrder
    peers: Mapping[int, Handle]
    state: Sequence[Reference]


@frozen
class PrintedLine:
    """A line that a worker has printed."""

    worker: int
    text: str


Message = GroupEvent | PrintedLine


@define(eq=False)
class RayChannel:
    """Carry orders, events, vectors and states of one worker."""

    worker: int
    channels: bool = True
    links: Links = field(init=False)
    mailbox: Mailbox = field(factory=Mailbox, init=False)
    _orders: SimpleQueue[GroupOrder] = field(factory=SimpleQueue, init=False)
    _messages: SimpleQueue[Message | None] = field(factory=SimpleQueue, init=False)
    _join: JoinMessage | None = field(default=None, init=False)  # the last order to join
    _sum: SliceSum | None = field(default=None, init=False)
    _sent: dict[int, Reference] = field(factory=dict, init=False)  # the last call of each peer, in the running sum
    _request: tuple[JoinOrder, Reference] | None = field(default=None, init=False)
    _provided: tuple[Commit, Provide] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.links = Links(self.worker, lambda text: self.tell(PrintedLine(self.worker, text)))

    # -- what the actor is told ----------------------------------------------------------------------------------------
    def take(self, messages: Sequence[GroupOrder | JoinMessage]) -> None:
        """Take orders of the operator."""
        for message in messages:
            if isinstance(message, JoinMessage):
                if self._join is None or message.order.generation >= self._join.order.generation:
                    self._join = message
                    self.mailbox.begin_generation(message.order.generation)
                    self.links.keep(message.peers)
                    self.links.bell.ring(self.links.bell.port)
                message = message.order
            self._orders.put(message)

    def receive(self, packet: Packet) -> None:
        """Take a packet that a call has brought."""
        self.mailbox.put(packet)
        self.links.bell.ring(self.links.bell.port)

    def poll(self) -> list[Message] | None:
        """Wait for messages to the operator, and return them; None after the end."""
        messages = [self._messages.get()]
        try:
            while True:
                messages.append(self._messages.get_nowait())
        except Empty:
            rest = [message for message in messages if message is not None]
        if rest and len(rest) < len(messages):
            self._messages.put(None)  # for the next call
        return rest or None

    def give_state(self, commit: Commit) -> Checkpoint | None:
        """Return the state of a commit, if this worker provides it."""
        own, state = self._provided or (None, None)
        return state() if state is not None and own == commit else None

    def tell(self, message: Message | None) -> None:
        """Keep a message for the operator; None is the last one."""
        self._messages.put(message)

    # -- the contract --------------------------------------------------------------------------------------------------
    def orders(self, seconds: float) -> Iterable[GroupOrder]:
        """Return the orders that have arrived; wait at most so long. Ray ends the process if the operator is gone."""
        orders = list[GroupOrder]()
        try:
            while True:
                orders.append(self._orders.get(timeout=0 if orders else max(seconds, 0.0)))
        except Empty:
            return orders

    def send(self, events: Sequence[GroupEvent]) -> None:
        """Send events without waiting."""
        for event in events:
            self._messages.put(event)

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
        if not self._collect(self._sum, deadline):
            self._report_cut(order.generation)
            return None
        total, self._sum = self._sum.result(), None  # whose arrays occupy channels
        return total

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to members that fetch it from this worker, in place of any earlier one."""
        self._provided = commit, state

    def fetch(self, order: JoinOrder, seconds: float) -> Checkpoint | None:
        """Return the state of the order's commit from its donor, or from the operator if that is None."""
        if self._request is None or self._request[0] != order:
            reference = self._ask(order)
            if reference is None:
                time.sleep(min(ASK_AGAIN, max(seconds, 0.0)))
                return None
            self._request = order, reference
        state = wait_for(self._request[1], seconds)
        if state is PENDING:
            return None
        self._request = None
        if state is None:
            time.sleep(min(ASK_AGAIN, max(seconds, 0.0)))
            return None
        return copy_state(state)

    # -- others --------------------------------------------------------------------------------------------------------
    def _collect(self, total: SliceSum, deadline: float) -> bool:
        """Receive packets until a sum is complete, and this member's are sent; return False after the deadline."""
        pause = LEAST_PAUSE
        while True:
            self.links.read(self.mailbox.put)
            self._take_packets(total)
            is_sent = self.links.write()  # what the sum has sent meanwhile too
            if is_sent and total.is_complete:
                return True
            rest = deadline - time.monotonic()
            if rest <= 0 or self._is_over(total):
                return False
            pause = LEAST_PAUSE if is_sent else min(2 * pause, LONGEST_PAUSE)
            self.links.wait(rest if is_sent else min(rest, pause))

    def _take_packets(self, total: SliceSum) -> None:
        """Let a sum take its packets that have arrived."""
        for packet in self.mailbox.take(total.key, 0.0):
            total.receive(packet)

    def _begin_sum(self, join: JoinMessage, key: SumKey, parts: Mapping[int, ShardPart], count: int) -> None:
        members = sorted(join.order.members)

        def send(rank: int, packet: Packet) -> None:
            number = members[rank]
            if (peer := join.peers.get(number)) is None:
                return  # it is lost, and the generation has ended
            if not (self.channels and self.links.send(number, peer, packet)):
                self._sent[number] = call(peer, "receive", packet)

        self._sent.clear()
        self.links.begin()
        self.mailbox.begin_sum(key)
        self._sum = SliceSum(key, members.index(self.worker), len(members), count, send)
        self._sum.begin(parts)

    def _is_over(self, total: SliceSum) -> bool:
        return self._join is None or self._join.order.generation != total.key.generation

    def _report_cut(self, generation: int) -> None:
        if cut := find_cut(self._sent):
            self.send([WorkerCut(self.worker, generation, cut)])

    def _ask(self, order: JoinOrder) -> Reference | None:
        """Return a reference to the state of an order; None if nobody is known to have it."""
        join = self._join
        if join is None or join.order.generation != order.generation:
            return None
        if order.donor is None:
            return next(iter(join.state), None) if join.order.commit == order.commit else None
        donor = join.peers.get(order.donor)
        return None if donor is None else call(donor, "give_state", order.commit)


def copy_state(state: Checkpoint) -> Checkpoint:
    """Return a state whose arrays are no longer in the object store, and can be written to."""
    return evolve(state, arrays={name: np.array(value) for name, value in state.arrays.items()})
