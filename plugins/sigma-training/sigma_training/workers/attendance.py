"""What each worker of a group does, for people who watch: no part of a run's state, as it depends on time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from attrs import define, field

from sigma_kernel.contracts.grouping import ComputeOrder, GroupEvent, WorkerComputed, WorkerEvent, WorkerJoined


@define(eq=False)
class WorkerRow:
    """A worker: rows of batches a second, shards of a batch, the generation that it joined last.

    ``silence`` are the seconds since the operator has heard of it.
    """

    rate: float = field(default=0.0, init=False)
    shards: int = field(default=0, init=False)
    generation: int = field(default=0, init=False)
    _heard: float = field(factory=time.monotonic, init=False)
    _order: ComputeOrder | None = field(default=None, init=False)
    _ordered: float = field(default=0.0, init=False)

    @property
    def silence(self) -> float:
        """Return the seconds since the worker was heard."""
        return time.monotonic() - self._heard

    def hear(self, event: WorkerEvent, batch: int) -> None:
        """Take what an event says of the worker; ``batch`` are the rows of a batch."""
        self._heard = time.monotonic()
        if isinstance(event, WorkerJoined):
            self.generation = event.generation
        elif isinstance(event, WorkerComputed) and (order := self._order) is not None:
            done = event.commit.position.iteration - order.commit.position.iteration
            share = self.shards / sum(map(len, order.shards.values()))
            if done > 0:  # else it has measured a split
                self.rate = done * batch * share / max(self._heard - self._ordered, 1e-9)
            self._order = None

    def follow(self, order: ComputeOrder) -> None:
        """Note an order, unless it is repeated."""
        if order != self._order:
            self._order, self._ordered, self.shards = order, time.monotonic(), len(order.shards[order.worker])


@define(eq=False)
class Attendance:
    """The workers of a group that are starting, waiting or members, by number."""

    rows: Mapping[int, WorkerRow] = field(factory=dict, init=False)

    def note(self, event: GroupEvent, orders: Iterable[object], present: Iterable[int], batch: int) -> None:
        """Take an event of the group, the orders that follow from it, and who is present then."""
        if self.rows.keys() != {*present}:
            self.rows = {number: self.rows.get(number) or WorkerRow() for number in sorted(present)}
        if isinstance(event, WorkerEvent) and event.worker in self.rows:
            self.rows[event.worker].hear(event, batch)
        for order in orders:
            if isinstance(order, ComputeOrder):
                self.rows[order.worker].follow(order)
