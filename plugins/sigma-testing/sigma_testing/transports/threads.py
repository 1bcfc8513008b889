"""A transport whose workers are threads of this process: the least that trains, and the reference for others."""

from __future__ import annotations

import pickle
import random
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import add
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import merge_in_tree
from sigma_kernel.contracts.grouping import (
    Blueprint,
    Commit,
    ComputeOrder,
    GroupEvent,
    GroupOperator,
    GroupOrder,
    JoinOrder,
    Position,
    Provide,
    ShardPart,
    ShardSum,
    StartOrder,
    Transport,
    WorkerComputed,
    WorkerLost,
)
from sigma_kernel.contracts.storing import Checkpoint

KILLS = 3  # workers killed in a row
Step = tuple[int, Position]  # the generation and the position of an iteration


@define(eq=False)
class ThreadTransport:
    """Run workers as threads; ``kill`` takes one's channel away, as the end of a process does."""

    blueprint: Blueprint | None = field(default=None, init=False)
    computed: int = field(default=0, init=False)  # bursts, by any worker
    gate: threading.Condition = field(factory=threading.Condition, init=False)
    channels: dict[int, ThreadChannel] = field(factory=dict, init=False)
    parts: dict[Step, dict[int, ShardPart]] = field(factory=dict, init=False)
    states: dict[int | None, tuple[Commit, Provide]] = field(factory=dict, init=False)  # by worker, None the operator's
    _inbox: deque[GroupEvent] = field(factory=deque, init=False)

    def start(self, blueprint: Blueprint, workers: int) -> None:
        """Keep the blueprint, as other processes get it."""
        self.blueprint = pickle.loads(pickle.dumps(blueprint))

    def send(self, orders: Sequence[GroupOrder]) -> None:
        """Put orders into the workers' queues; start the worker of a :class:`StartOrder`."""
        with self.gate:
            for order in orders:
                if isinstance(order, StartOrder) and order.worker not in self.channels:
                    self._start_worker(order.worker)
                self.channels[order.worker].inbox.append(order)
            self.gate.notify_all()

    def _start_worker(self, worker: int) -> None:
        channel = self.channels[worker] = ThreadChannel(worker, self)
        threading.Thread(target=self._serve, args=(channel,), name=f"sigma-worker-{worker}", daemon=True).start()

    def _serve(self, channel: ThreadChannel) -> None:
        assert self.blueprint is not None
        self.blueprint.serve(channel.worker, channel)
        channel.dead = True

    def events(self, seconds: float) -> Iterable[GroupEvent]:
        """Return the events that have arrived."""
        with self.gate:
            if not self._inbox:
                self.gate.wait(seconds)
            arrived = [*self._inbox]
            self._inbox.clear()
        return arrived

    def tell(self, events: Iterable[GroupEvent]) -> None:
        """Let events arrive."""
        events = [*events]
        with self.gate:
            self.computed += sum(isinstance(event, WorkerComputed) for event in events)
            self._inbox.extend(events)
            self.gate.notify_all()

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of a commit to workers that fetch it from the operator."""
        with self.gate:
            self.states[None] = commit, state

    def kill(self, worker: int) -> None:
        """Take the channel of a worker away."""
        with self.gate:
            self.channels[worker].dead = True
            self.states.pop(worker, None)
            self._inbox.append(WorkerLost(worker, "killed"))
            self.gate.notify_all()

    def close(self) -> None:
        """End all workers."""
        with self.gate:
            for channel in self.channels.values():
                channel.dead = True
            self.gate.notify_all()


@define(eq=False)
class ThreadChannel:
    """A worker's end."""

    worker: int
    transport: ThreadTransport
    inbox: deque[GroupOrder] = field(factory=deque, init=False)
    dead: bool = field(default=False, init=False)

    def orders(self, seconds: float) -> Iterable[GroupOrder]:
        """Return the orders that have arrived."""
        with self.transport.gate:
            if not self.inbox and not self.dead:
                self.transport.gate.wait(seconds)
            self._check()
            arrived = [*self.inbox]
            self.inbox.clear()
        return arrived

    def send(self, events: Sequence[GroupEvent]) -> None:
        """Send events."""
        if events and not self.dead:
            self.transport.tell(events)

    def sum(
        self, order: ComputeOrder, position: Position, parts: Mapping[int, ShardPart], count: int, seconds: float
    ) -> ShardSum | None:
        """Return the sum over all shards, in the order of their tree."""
        gate, key, end = self.transport.gate, (order.generation, position), time.monotonic() + seconds
        with gate:
            self._check()
            shown = self.transport.parts.setdefault(key, {})
            shown.update(parts)
            gate.notify_all()
            while len(shown) < count:
                if (left := end - time.monotonic()) <= 0:
                    return None
                gate.wait(left)
                self._check()
            for older in [step for step in self.transport.parts if _is_over(step, order)]:
                del self.transport.parts[older]
            every = [shown[number] for number in range(count)]
        vectors = {name: merge_in_tree([part.vectors[name] for part in every], add) for name in every[0].vectors}
        return ShardSum(vectors, [part.note for part in every])

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of a commit to members that fetch it from this worker."""
        with self.transport.gate:
            if not self.dead:
                self.transport.states[self.worker] = commit, state

    def fetch(self, order: JoinOrder, seconds: float) -> Checkpoint | None:
        """Return the state of the order's commit, if its donor has it."""
        with self.transport.gate:
            self._check()
            commit, state = self.transport.states.get(order.donor, (None, None))
        if state is None or commit != order.commit:
            time.sleep(min(seconds, 0.01))
            return None
        return pickle.loads(pickle.dumps(state()))  # type: ignore[no-any-return]

    def _check(self) -> None:
        if self.dead:
            raise ConnectionError("the channel is closed")


def _is_over(step: Step, order: ComputeOrder) -> bool:
    """Return whether all members have passed a step: that of an earlier burst.

    Those of the same burst are kept, as a member without a shard of a small batch may ask for its sum late.
    """
    return step[0] < order.generation or step[1].iteration < order.commit.position.iteration


@define(eq=False)
class ThreadOperator(GroupOperator):
    """Train by threads that behave as workers in other processes do."""

    transports: list[Any] = field(factory=list, init=False)

    def connect(self) -> Transport:
        """Return a transport."""
        self.transports.append(transport := ThreadTransport())
        return transport


@contextmanager
def kill_at_random(operator: ThreadOperator, seed: int, pause: float) -> Iterator[list[int]]:
    """Kill a random worker again and again, after at most so many seconds; give the numbers of those killed so far.

    After three in a row, a burst is computed first: on a busy machine, a run would end of too many losses.
    """
    draw, killed, ended = random.Random(seed), list[int](), threading.Event()

    def kill() -> None:
        computed, row = 0, 0
        while not ended.wait(draw.uniform(0, pause)):
            for transport in operator.transports:
                alive = [number for number, channel in [*transport.channels.items()] if not channel.dead]
                row = row if transport.computed == computed else 0
                if alive and row < KILLS:
                    computed, row = transport.computed, row + 1
                    killed.append(draw.choice(alive))
                    transport.kill(killed[-1])

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()
