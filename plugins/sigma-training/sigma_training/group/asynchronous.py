"""Asynchronous training: gradients are computed while the sums of iterations before are on their way.

The *age* of a gradient is the number of updates that it lacks: those of earlier iterations whose sums had not arrived
when it was computed. It is at most the staleness (stale synchronous parallel, Ho et al. 2013). A sum is that of all
shards, and sums are applied in the order of iterations, by all workers alike: so each shard is applied once. A burst
ends when all of its sums are applied, and leaves one state.

Ages depend on time, and the bits of a burst on its ages alone: with these, it is computed again to the bit.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel import read_only
from sigma_kernel.contracts import Arrays, Batches, Burst, Iterations, Records
from sigma_kernel.contracts.grouping import ShardPart, ShardSum
from sigma_kernel.errors import SigmaCheckpointError
from sigma_training.group.merging import ShareMerger, name_losses
from sigma_training.group.sharding import Exchange, ShardedStep, WeightedShare

Ages = Sequence[Sequence[int]]  # of the gradients of a burst, by iteration and shard


@define
class SumWindow:
    """How far a worker is in a burst: iterations that it has computed, and those whose sums it has taken since.

    Args:
        end: Iterations of the burst.
        staleness: Sums that may be missing when an iteration is computed.
    """

    end: int
    staleness: int
    computed: int = field(default=0, init=False)
    taken: int = field(default=0, init=False)

    @property
    def is_over(self) -> bool:
        """Return whether all sums are taken."""
        return self.taken == self.end

    @property
    def waits(self) -> bool:
        """Return whether nothing may be computed before another sum is taken."""
        return self.computed == self.end or self.computed - self.taken > self.staleness

    def compute(self) -> tuple[int, int]:
        """Count the next iteration as computed; return its number and its age."""
        self.computed += 1
        return self.computed - 1, self.computed - 1 - self.taken

    def take(self) -> None:
        """Count the next sum as taken."""
        self.taken += 1

    def close(self) -> None:
        """End the burst with the last iteration that a worker may have computed which has not taken the last sum."""
        self.end = min(self.end, self.taken + self.staleness)


@define(eq=False)
class AgedBurst:
    """A burst whose gradients may lack updates: what has been applied so far."""

    shards: int
    exchange: Exchange
    steps: Iterations
    batches: Batches
    arrays: Arrays = field(init=False)
    ages: list[Sequence[int]] = field(factory=list, init=False)
    _records: list[Records] = field(factory=list, init=False)
    _losses: dict[str, float] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.arrays = self.steps.arrays

    @property
    def count(self) -> int:
        """Return the number of shards of a batch."""
        return min(self.shards, len(self.batches.rows[0]))

    @property
    def is_finite(self) -> bool:
        """Return whether the last loss is finite."""
        return not self._records or bool(np.isfinite(self._records[-1]["loss"]))

    def compute(self, offset: int, numbers: Sequence[int], age: int, arrays: Arrays) -> dict[int, ShardPart]:
        """Return the parts of some shards of an iteration, from arrays that lack so many updates."""
        step = ShardedStep(self.shards, self.exchange)
        shares = step.compute_shares(self.steps, arrays, self.batches, offset, numbers)
        return {number: self._pack(share, age, arrays) for number, share in shares.items()}

    def apply(self, total: ShardSum) -> bool:
        """Apply the sum of the next iteration; return whether its loss is finite."""
        offset, aged = len(self._records), [pickle.loads(note) for note in total.notes]
        shares = [self._shift_state(share, self.arrays, share.weight) if age else share for age, share in aged]
        merged = ShareMerger(self.steps).merge(shares)
        self.arrays = self.steps.apply_update(self.arrays, total.vectors, merged.state, offset)
        self.ages.append([age for age, _ in aged])
        self._records.append(merged.records)
        self._losses |= name_losses({n % self.exchange.workers: share.loss for n, share in enumerate(shares)})
        return self.is_finite

    def result(self) -> Burst:
        """Return the burst, as far as it has come."""
        ring = {name: np.stack([records[name] for records in self._records]) for name in self._records[0]}
        return Burst(self.arrays, ring, len(self._records), self._losses)

    def _pack(self, share: WeightedShare, age: int, arrays: Arrays) -> ShardPart:
        """Return the part of a shard; of layer state that lacks updates, it has the change alone."""
        rest = self._shift_state(share, arrays, -share.weight) if age else share
        return ShardPart(share.gradients, pickle.dumps((age, evolve(rest, gradients={})), protocol=5))

    def _shift_state(self, share: WeightedShare, arrays: Arrays, factor: float) -> WeightedShare:
        """Return a share with so many times the layer state of the arrays added to its own."""
        held = self.steps.to_host({name: arrays[name] for name in share.state if name in arrays})
        state = {name: read_only(share.state[name] + x.dtype.type(factor) * x) for name, x in held.items()}
        return evolve(share, state={**share.state, **state})


@frozen
class AsynchronousStep:
    """Compute bursts in shards of every batch, with gradients whose age is at most ``staleness``."""

    shards: int
    staleness: int
    exchange: Exchange

    def run(self, steps: Iterations, batches: Batches) -> tuple[Burst, Ages]:
        """Run iterations on the given minibatches; return the ages, too. Stop early after a loss that is not finite.

        After such a loss, sums that other workers may have begun are completed, and not applied.
        """
        burst = AgedBurst(self.shards, self.exchange, steps, batches)
        window = SumWindow(len(batches.rows), self.staleness)
        numbers, sums = self.exchange.numbers(burst.count), deque[Future[ShardSum]]()
        pool = ThreadPoolExecutor(1, thread_name_prefix="sigma-sum")  # one sum at a time, in their order
        try:
            while not window.is_over:
                if window.waits or (sums and sums[0].done()):
                    total = sums.popleft().result()
                    window.take()
                    if burst.is_finite and not burst.apply(total):
                        window.close()
                    continue
                offset, age = window.compute()
                parts = burst.compute(offset, numbers, age, burst.arrays)
                sums.append(pool.submit(self._sum, offset, parts, burst.count))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return burst.result(), burst.ages

    def _sum(self, offset: int, parts: dict[int, ShardPart], count: int) -> ShardSum:
        """Return the sum of an iteration, which the next one leaves alone."""
        total = self.exchange.sum(offset, parts, count)
        return ShardSum({name: read_only(vector.copy()) for name, vector in total.vectors.items()}, total.notes)


@frozen
class RepeatedStep:
    """Compute a burst again, from the ages of its gradients."""

    shards: int
    ages: Ages
    exchange: Exchange

    def __call__(self, steps: Iterations, batches: Batches) -> Burst:
        """Run the iterations that have ages on the given minibatches."""
        burst, versions = AgedBurst(self.shards, self.exchange, steps, batches), dict[int, Records]()
        read = {offset - age for offset, ages in enumerate(self.ages) for age in ages if age}
        for offset, ages in enumerate(self.ages):
            if offset in read:
                versions[offset] = steps.to_host({name: burst.arrays[name] for name in steps.written_names})
            parts = dict[int, ShardPart]()
            for age in {*ages}:
                arrays = {**burst.arrays, **steps.place(versions[offset - age])} if age else burst.arrays
                parts |= burst.compute(offset, [n for n, own in enumerate(ages) if own == age], age, arrays)
            burst.apply(self.exchange.sum(offset, parts, burst.count))
        return burst.result()


def write_ages(ages: Ages) -> str:
    """Return ages as text: a word an iteration, of a hexadecimal digit a shard; empty if all ages are 0."""
    return " ".join("".join(f"{age:x}" for age in row) for row in ages) if any(map(any, ages)) else ""


def read_ages(text: str, shards: int) -> Ages:
    """Return the ages of a text; raise SigmaCheckpointError if they are not those of so many shards."""
    try:
        ages = [[int(digit, 16) for digit in word] for word in text.split()]
    except ValueError:
        ages = []
    if not ages or any(len(row) != shards or max(row) > offset for offset, row in enumerate(ages)):
        raise SigmaCheckpointError(
            f"journal: {text[:40]!r} are no ages of the gradients of {shards} shards. Restore it from a copy."
        )
    return ages
