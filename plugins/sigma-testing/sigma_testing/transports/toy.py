"""A blueprint for tests of transports: it trains some arrays, and everything in them is rounded or chained.

The "gradients" of shards are random numbers times the state, by iteration and shard, so that any vector that is
missing, doubled, late, or added in another order changes the bits of all states after it.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
import zlib
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import (
    Channel,
    Checkpoint,
    Commit,
    ComputeOrder,
    GroupEvent,
    GroupOrder,
    Position,
    ShardPart,
    ShardSum,
    StateSent,
    Tick,
    WorkerComputed,
    WorkerFailed,
    WorkerJoined,
    WorkerLost,
    merge_in_tree,
)
from sigma_training.group.member import (
    CopyState,
    EndWorker,
    GroupMember,
    MemberAction,
    PromoteState,
    RunBurst,
    SendState,
)

Arrays = Mapping[str, np.ndarray]
PATIENCE = 0.05  # seconds that a sum waits at a time


@frozen
class ToyBlueprint:
    """What is trained: ``length`` numbers.

    Args:
        folder: Where each worker writes the number of its process.
        shards: Shards of a batch; every fifth batch has half of them.
        length: Numbers in the vector of a shard; there are two more vectors, of 3 numbers and of none.
        note: Bytes of the note of a shard.
        seconds: The duration of an iteration.
        fails_at: The iteration in which the first shard raises ValueError.
    """

    folder: str
    shards: int = 4
    length: int = 1000
    note: int = 20
    seconds: float = 0.0
    fails_at: int = -1

    @property
    def plugins(self) -> Mapping[str, str]:
        """Return none."""
        return {}

    def serve(self, worker: int, channel: Channel) -> None:
        """Work until the end."""
        path = Path(self.folder, f"worker-{worker}")
        path.with_suffix(".new").write_text(str(os.getpid()))
        path.with_suffix(".new").rename(path)
        ToyWorker(self, channel, GroupMember(worker)).run()

    def process(self, worker: int) -> int:
        """Return the number of a worker's process on this machine, once it serves."""
        return int(Path(self.folder, f"worker-{worker}").read_text())

    # -- the training --------------------------------------------------------------------------------------------------
    def initial(self) -> Arrays:
        """Return the state before the first iteration."""
        return {
            "weights": np.ones(self.length, np.float32),
            "totals": np.zeros(3),
            "notes": np.zeros(1, np.int64),
        }

    def count(self, position: Position) -> int:
        """Return how many shards the batch of an iteration has."""
        return max(self.shards // 2, 1) if position.iteration % 5 == 4 else self.shards

    def part(self, position: Position, shard: int, state: Arrays) -> ShardPart:
        """Return what a shard adds."""
        if shard == 0 and position.iteration == self.fails_at:
            raise ValueError(f"iteration {self.fails_at} is not liked")
        draw = np.random.default_rng([position.iteration, position.version, shard])
        vectors: Arrays = {
            "float32": draw.standard_normal(self.length, np.float32) * state["weights"],
            "float64": draw.standard_normal(3),
            "none": np.zeros(0, np.float32),
        }
        return ShardPart(vectors, bytes([shard, position.iteration % 256]) * (self.note // 2))

    def update(self, state: Arrays, total: ShardSum, live: Mapping[str, Any]) -> Arrays:
        """Return the state after an iteration."""
        rate = np.float32(live.get("rate", 0.01))
        if len(total.vectors["none"]):
            raise ValueError("a vector without numbers has some")
        return {
            "weights": state["weights"] - rate * total.vectors["float32"],
            "totals": state["totals"] + total.vectors["float64"],
            "notes": np.array([zlib.crc32(b"".join(total.notes), int(state["notes"][0]))]),
        }

    def train(self, iterations: int, state: Arrays | None = None, begin: Position | None = None, **live: Any) -> Arrays:
        """Return the state after some iterations, without workers."""
        begin, state = begin or Position(), state or self.initial()
        for iteration in range(begin.iteration, begin.iteration + iterations):
            position = evolve(begin, iteration=iteration)
            parts = [self.part(position, shard, state) for shard in range(self.count(position))]
            vectors = {n: merge_in_tree([part.vectors[n] for part in parts], np.add) for n in parts[0].vectors}
            state = self.update(state, ShardSum(vectors, [part.note for part in parts]), live)
        return state


@define(eq=False)
class ToyWorker:
    """A worker: a thread for messages, and another one that computes."""

    blueprint: ToyBlueprint
    channel: Channel
    member: GroupMember
    _state: Arrays = field(factory=dict, init=False)
    _beside: Arrays = field(factory=dict, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)
    _tasks: SimpleQueue[CopyState | RunBurst | None] = field(factory=SimpleQueue, init=False)

    def run(self) -> None:
        """Take orders until the worker is to end."""
        threading.Thread(target=self._compute, daemon=True).start()
        while not self.member.ended:
            try:
                for order in self.channel.orders(0.02):
                    self._tell(order)
            except ConnectionError as error:
                self._tell(WorkerLost(self.member.worker, str(error)))
            self._tell(Tick(time.monotonic()))
        self._tasks.put(None)

    def _tell(self, message: GroupOrder | GroupEvent) -> None:
        with self._lock:
            for answer in self.member.on(message):
                if isinstance(answer, MemberAction):
                    self._act(answer)
                else:
                    self.channel.send([answer])

    def _act(self, action: MemberAction) -> None:
        if isinstance(action, CopyState | RunBurst):
            self._tasks.put(action)
        elif isinstance(action, PromoteState):
            self._hold(self._beside)
        elif isinstance(action, SendState):
            self.channel.send([StateSent(self.member.worker, action.commit, Checkpoint(self._state, {}))])
        elif isinstance(action, EndWorker):
            self._state = {}

    def _hold(self, state: Arrays) -> None:
        """Hold the committed state, and give it to others."""
        self._state = state
        assert self.member.commit is not None
        self.channel.provide(self.member.commit, lambda: Checkpoint(state, {}))

    # -- the thread that computes --------------------------------------------------------------------------------------
    def _compute(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._copy(task) if isinstance(task, CopyState) else self._run(task.order)
            except Exception:
                self._tell(WorkerFailed(self.member.worker, traceback.format_exc()))

    def _copy(self, task: CopyState) -> None:
        order = task.order
        while self.member.generation == order.generation and not self.member.ended:
            if (copy := self.channel.fetch(order, PATIENCE)) is not None:
                with self._lock:
                    self._tell(WorkerJoined(self.member.worker, order.generation))
                    if self.member.commit == order.commit:
                        self._hold(copy.arrays)
                return

    def _run(self, order: ComputeOrder) -> None:
        state = self._state
        for iteration in range(order.commit.position.iteration, order.end.iteration):
            time.sleep(self.blueprint.seconds)
            following = self._iterate(order, evolve(order.commit.position, iteration=iteration), state)
            if following is None:
                return
            state = following
        with self._lock:
            if self.member.running is order:
                self._beside = state
                digest = f"{zlib.crc32(b''.join(value.tobytes() for value in state.values()))}"
                done = WorkerComputed(self.member.worker, Commit(order.end, order.generation), digest, order.live)
                self._tell(done)

    def _iterate(self, order: ComputeOrder, position: Position, state: Arrays) -> Arrays | None:
        """Return the state after an iteration; None if the burst has been dropped."""
        count = self.blueprint.count(position)
        own = [shard for shard in order.shards[self.member.worker] if shard < count]
        parts = {shard: self.blueprint.part(position, shard, state) for shard in own}
        while self.member.running is order:
            if (total := self.channel.sum(order, position, parts, count, PATIENCE)) is not None:
                return self.blueprint.update(state, total, order.live)
        return None
