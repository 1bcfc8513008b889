"""The local operator: bursts that end where something is due, or after a bounded time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import Merger, Operator
from sigma_kernel.settings import ge, gt
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.step.steps import Steps
from sigma_operator_local.pace import Pace
from sigma_operator_local.shards import Sharding, Sum


@define(eq=False)
class LocalOperator(Operator):
    """Run a trainer on this machine.

    ``shards`` cuts every batch into so many parts, whose gradients ``workers`` threads compute and ``merger`` merges
    in a fixed tree.
    ``burst_seconds`` bounds the time between two boundaries, and with it how long a command waits.
    """

    workers: int = field(default=1, validator=ge(1))
    shards: int = field(default=1, validator=ge(1))
    burst_seconds: float = field(default=0.05, validator=gt(0))
    merger: Merger = field(factory=Sum)

    def train(self, session: Session) -> None:
        """Train until the session's boundary says that it is over."""
        pace = Pace(self.burst_seconds)
        session.split(self.workers)
        with self._pool() as pool:
            compute = Sharding(self.shards, self.workers, self.merger, pool) if self.shards > 1 else Steps.fused
            while session.boundary():
                n = pace.bounded(session.distance())
                began = time.perf_counter()
                done = session.advance(n, compute)
                pace.learn(done, time.perf_counter() - began)
                session.settle()

    def _pool(self) -> Any:
        if self.shards == 1 or self.workers == 1:
            return nullcontext()
        return ThreadPoolExecutor(self.workers, thread_name_prefix="sigma-worker")
