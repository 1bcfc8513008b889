"""What simulated workers train: numbers, and the states of a run that nothing disturbs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from attrs import evolve, field, frozen

from sigma_kernel.contracts.grouping import Commit, Position
from sigma_testing.group.schedules import FaultSchedule


@frozen
class Digest:
    """A vector, as a number; its sum depends on the order of the operands."""

    value: int

    def __add__(self, other: Digest) -> Digest:
        return Digest(hash((self.value, other.value)))


@frozen
class ReferenceRun:
    """The states of a run that nothing disturbs, one after each iteration."""

    schedule: FaultSchedule
    states: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        states = [self.schedule.seed]
        for n in range(self.schedule.steps):
            digests = [digest(states[-1], n, self.live(n)["rate"], i).value for i in range(self.schedule.shards)]
            states.append(next_state(states[-1], self.position(n), total(digests)))
        object.__setattr__(self, "states", states)

    def state_of(self, commit: Commit) -> int:
        """Return the state of a commit."""
        return self.states[commit.position.iteration]

    def places(self, most: int) -> Sequence[int]:
        """Return the numbers of iterations, up to one, after which a state is known."""
        return range(most + 1)

    def go_back(self, commit: Commit) -> int:
        """Return the state after as many iterations, which the operator gives the workers as this commit."""
        return self.states[commit.position.iteration]

    def position(self, n: int) -> Position:
        """Return the position after ``n`` iterations."""
        return Position(n // 5, n, n // 4)

    def live(self, n: int) -> dict[str, int]:
        """Return the live values of an iteration, which change every three."""
        return {"rate": n // 3}

    def end(self, begin: Position, draw: Random) -> Position:
        """Return the end of a burst, with the same live values throughout; some bursts only measure the state."""
        if draw.random() < 0.15:
            return evolve(begin, version=begin.version + 1)
        n = begin.iteration
        return self.position(min(draw.randint(n + 1, n + 3), self.schedule.steps, n - n % 3 + 3))


def digest(state: int, n: int, rate: int, shard: int) -> Digest:
    """Return what a worker computes for one shard of an iteration."""
    return Digest(hash((state, n, rate, shard)))


def next_state(state: int, at: Position, summed: int) -> int:
    """Return the state after an update."""
    return hash((state, at.epoch, at.iteration, at.version, summed))


def total(values: Sequence[int]) -> int:
    """Return the sum in the fixed tree: the first subtree is the largest power of two below the number of values."""
    if len(values) == 1:
        return values[0]
    half = 1 << (len(values) - 1).bit_length() - 1
    return hash((total(values[:half]), total(values[half:])))
