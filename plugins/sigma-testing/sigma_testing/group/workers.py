"""A simulated worker: a process with its state machine and its states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from sigma_kernel.contracts.grouping import Commit, ComputeOrder


@define(eq=False)
class SimulatedWorker:
    """A process: its state machine, its states, and whether it runs."""

    number: int
    member: Any  # a GroupMember
    state: int = 0
    beside: int = 0
    run: RunningBurst | None = None
    alive: bool = True
    died: float = 0.0
    frozen: int = 0  # how many times it is stopped at present
    inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(factory=list)

    def end(self, time: float) -> None:
        """End the process."""
        self.alive, self.died, self.run = False, time, None
        self.inbox.clear()


@define(eq=False)
class RunningBurst:
    """A burst in a worker: how far it has come, from which state."""

    order: ComputeOrder
    at: int
    state: int


SumPlace = tuple[int, int, int]  # the generation, the version of the state before the burst, and the iteration


def sum_place(generation: int, commit: Commit, n: int) -> SumPlace:
    """Return the place of a sum of a burst from a commit: parts of no other place count for it."""
    return generation, commit.position.version, n


def is_same_burst(a: ComputeOrder, b: ComputeOrder) -> bool:
    """Return whether two orders of members are of one burst."""
    return (a.generation, a.commit) == (b.generation, b.commit)


def held_state(worker: SimulatedWorker, commit: Commit) -> int | None:
    """Return the state of a commit if a worker that runs holds it."""
    if not worker.alive or worker.frozen:
        return None
    if worker.member.commit == commit:
        return worker.state
    reported = worker.member.beside
    return worker.beside if reported is not None and reported.commit == commit else None
