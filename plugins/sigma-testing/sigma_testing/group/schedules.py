"""Schedules of faults for a group of workers, each drawn from one seed."""

from __future__ import annotations

from random import Random

from attrs import frozen

KINDS = ("kill", "kill_all", "freeze", "isolate", "cut", "accuse", "resize", "sleep")


@frozen
class WorkerFault:
    """A fault at a time, in seconds.

    Args:
        kind: kill: a process ends. kill_all: all do. freeze: one stops for a while, and goes on as if nothing had
            happened. isolate: it and the operator do not reach each other. cut: two workers do not. accuse: the
            transport reports a worker lost that is not. resize: another number of workers is wanted. sleep: the
            operator stops for a while.
        choice: A number that selects the worker, and whatever else is to be selected.
        seconds: How long it lasts.
        noticed: Whether the transport reports the end of a process.
    """

    at: float
    kind: str
    choice: int
    seconds: float
    noticed: bool


@frozen
class FaultSchedule:
    """What happens to a group: sizes, the network, and faults.

    Args:
        loss: The share of messages that are lost, ``doubled`` of those that arrive twice, ``late`` of those that take
            20 times as long, ``delay`` the mean delay of all others in seconds; they overtake each other.
        error: The iteration in which the code of the first worker raises; never if negative.
        death: The time at which the operator ends; never if negative.
    """

    seed: int
    workers: int
    shards: int
    at_least: int
    steps: int
    lost_after: float
    delay: float
    loss: float
    doubled: float
    late: float
    faults: tuple[WorkerFault, ...]
    error: int = -1
    death: float = -1.0

    @property
    def is_calm(self) -> bool:
        """Return whether no worker is ever to be lost."""
        reliable = not self.loss and not self.late and self.delay <= 0.1
        return reliable and all(fault.kind in ("resize", "sleep") for fault in self.faults)


def draw_schedule(seed: int) -> FaultSchedule:
    """Return the schedule of a seed: of 1 to 8 workers mostly, of up to 200 in one of a hundred."""
    draw = Random(seed)
    workers = _draw_workers(draw)
    shards = max(workers, draw.choice((1, 2, 3, 4, 8, 16)))
    steps = draw.randint(3, 16) if workers < 40 else draw.randint(2, 5)
    calm = draw.random() < 0.15
    kinds = ("resize", "sleep") if calm else KINDS
    return FaultSchedule(
        seed, workers, shards, draw.randint(1, max(1, workers // 2)), steps,
        lost_after=draw.choice((2.0, 5.0)),
        delay=draw.choice((0.001, 0.02, 0.1, 0.3)),
        loss=0.0 if calm else draw.choice((0.0, 0.0, 0.02, 0.1)),
        doubled=draw.choice((0.0, 0.05, 0.3)),
        late=0.0 if calm else draw.choice((0.0, 0.1, 0.3)),
        faults=tuple(_draw_fault(draw, kinds, steps) for _ in range(draw.randint(0, 8))),
        error=draw.randrange(steps) if draw.random() < 0.04 else -1,
        death=draw.uniform(0.5, 10.0) if draw.random() < 0.05 else -1.0,
    )  # fmt: skip


def _draw_workers(draw: Random) -> int:
    size = draw.random()
    if size < 0.01:
        return draw.randint(41, 200)
    return draw.randint(9, 40) if size < 0.06 else draw.randint(1, 8)


def _draw_fault(draw: Random, kinds: tuple[str, ...], steps: int) -> WorkerFault:
    return WorkerFault(
        at=draw.uniform(0.0, 1.0 + steps), kind=draw.choice(kinds), choice=draw.randrange(2**30),
        seconds=draw.uniform(0.5, 12.0), noticed=draw.random() < 0.6,
    )  # fmt: skip
