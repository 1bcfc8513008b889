"""What a worker does in a check: it says what it has, and sums vectors with the others, over any transport."""

from __future__ import annotations

import os
import platform
import socket
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, evolve, frozen

from sigma_kernel import catalogue
from sigma_kernel.contracts import (
    Channel,
    Commit,
    ComputeOrder,
    GroupEvent,
    GroupOrder,
    Position,
    ShardPart,
    Tick,
    WorkerComputed,
    WorkerFailed,
    WorkerJoined,
)
from sigma_training.group.member import CopyState, GroupMember, RunBurst

LENGTH = "length"  # among the live values: the numbers of the vectors to be summed; without it, facts are wanted
WAIT = 0.05  # seconds
PATIENCE = 60.0  # seconds without an order after which a worker ends


@frozen
class WorkerFacts:
    """What a worker says of itself.

    Args:
        host: The name of its machine.
        process: The number of its process.
        cpus: Processors that it may use.
        python: The version of the interpreter.
        plugins: The versions of the plugins, by distribution.
        reads_folder: Whether it reads a file that the operator has written below the run folder.
        clock: The time, in seconds since 1970.
    """

    host: str
    process: int
    cpus: int
    python: str
    plugins: Mapping[str, str]
    reads_folder: bool
    clock: float


@frozen
class ProbeBlueprint:
    """What workers of a check do.

    Args:
        plugins: The versions of the plugins of the operator.
        mark: A file that the operator has written below the run folder.
        text: What is in it.
    """

    plugins: Mapping[str, str]
    mark: str
    text: str

    def serve(self, worker: int, channel: Channel) -> None:
        """Work until the worker is to leave, or the operator is gone."""
        ProbeWorker(self, channel, GroupMember(worker, PATIENCE)).run()

    def describe(self) -> WorkerFacts:
        """Return what this process has."""
        return WorkerFacts(
            socket.gethostname(),
            os.getpid(),
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            platform.python_version(),
            {plugin.name: plugin.version for plugin in catalogue().plugins} | catalogue().versions(),
            self._reads(),
            time.time(),
        )

    def _reads(self) -> bool:
        try:
            return Path(self.mark).read_text() == self.text
        except OSError:
            return False


@define(eq=False)
class ProbeWorker:
    """A worker of a check."""

    blueprint: ProbeBlueprint
    channel: Channel
    member: GroupMember

    def run(self) -> None:
        """Follow orders until the end."""
        while not self.member.ended:
            try:
                for order in self.channel.orders(WAIT):
                    self._tell(order)
            except ConnectionError:
                return
            self._tell(Tick(time.monotonic()))

    def _tell(self, message: GroupOrder | GroupEvent) -> None:
        for answer in self.member.on(message):
            if isinstance(answer, GroupEvent):
                self.channel.send([answer])
            elif isinstance(answer, CopyState):  # there is none
                self._tell(WorkerJoined(self.member.worker, answer.order.generation))
            elif isinstance(answer, RunBurst):
                self._run(answer.order)

    def _run(self, order: ComputeOrder) -> None:
        try:
            records: Any = self._time_sums(order) if LENGTH in order.live else self.blueprint.describe()
        except ConnectionError:
            return
        except Exception:
            self._tell(WorkerFailed(self.member.worker, traceback.format_exc()))
            return
        self._tell(WorkerComputed(self.member.worker, Commit(order.end, order.generation), "", records))

    def _time_sums(self, order: ComputeOrder) -> list[float]:
        """Return the seconds of each sum of a burst."""
        begin, shards = order.commit.position, sum(map(len, order.shards.values()))
        vector = np.ones(order.live[LENGTH], np.float32)
        parts = {number: ShardPart({"float32": vector}) for number in order.shards[self.member.worker]}
        seconds = list[float]()
        for iteration in range(begin.iteration, order.end.iteration):
            began = time.perf_counter()
            self._sum(order, evolve(begin, iteration=iteration), parts, shards)
            seconds.append(time.perf_counter() - began)
        return seconds

    def _sum(self, order: ComputeOrder, position: Position, parts: Mapping[int, ShardPart], shards: int) -> None:
        end = time.monotonic() + PATIENCE
        while (total := self.channel.sum(order, position, parts, shards, WAIT)) is None:
            if time.monotonic() > end:
                raise TimeoutError(f"a sum was not there after {PATIENCE:g} s")
        if not (total.vectors["float32"] == shards).all():
            raise ValueError("a sum of ones is wrong")
