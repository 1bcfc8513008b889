"""Simulated time, and a network that delays, reorders, doubles and loses messages."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

from attrs import define, field

from sigma_testing.group.schedules import FaultSchedule

OPERATOR = -1  # its number as an end of links


@define(eq=False)
class SimulatedNetwork:
    """Call functions at later times, as messages of a schedule arrive."""

    schedule: FaultSchedule
    draw: Random
    time: float = field(default=0.0, init=False)
    _queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)
    _severed: dict[frozenset[int], float] = field(factory=dict, init=False)  # links, and until when

    @property
    def is_busy(self) -> bool:
        """Return whether anything is still to be called."""
        return bool(self._queue)

    def step(self) -> None:
        """Call the next function."""
        self.time, _, function, arguments = heappop(self._queue)
        function(*arguments)

    def call_later(self, seconds: float, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function in so many seconds."""
        self._count += 1
        heappush(self._queue, (self.time + seconds, self._count, function, arguments))

    def call_soon(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function after the delay of a message, once and surely."""
        self.call_later(self.draw.expovariate(1 / self.schedule.delay), function, *arguments)

    def carry(self, function: Callable[..., None], *arguments: Any) -> None:
        """Deliver a message by calling a function, late, twice or never."""
        for _ in range(2 if self.draw.random() < self.schedule.doubled else 1):
            if self.draw.random() >= self.schedule.loss:
                delay = self.schedule.delay * (20 if self.draw.random() < self.schedule.late else 1)
                self.call_later(self.draw.expovariate(1 / delay), function, *arguments)

    def sever(self, a: int, b: int, seconds: float) -> None:
        """Cut the link between two ends for a while."""
        self._severed[frozenset((a, b))] = self.time + seconds

    def reaches(self, a: int, b: int) -> bool:
        """Return whether the link between two ends holds."""
        return not self._severed or self._severed.get(frozenset((a, b)), 0.0) <= self.time
