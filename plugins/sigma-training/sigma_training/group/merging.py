"""Merge the shares of the shards of a batch, and compute them in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

import numpy as np
from attrs import define, field, frozen

from sigma_kernel import read_only
from sigma_kernel.contracts import Iterations, Merger, Metric, Records, Share, merge_in_tree
from sigma_kernel.contracts.grouping import ShardPart, ShardSum
from sigma_kernel.errors import expect, introduce_errors
from sigma_training.group.sharding import METRICS, T, WeightedShare


@frozen
class ShareMerger:
    """Merge shares: gradients by a merger, or summed; losses and state summed; metrics by their own merge.

    All but a merger of gradients is given two shares at a time, in the order of :func:`merge_in_tree`.
    """

    steps: Iterations
    merger: Merger | None = None

    def merge(self, shares: Sequence[WeightedShare]) -> Share:
        """Return the share of the whole batch, from those of all its shards in their order."""
        every: Sequence[Share] = shares
        merged = merge_in_tree(every, self._pair)
        if self.merger is None:
            return merged
        return Share(merged.records, self._merge_gradients(self.merger, shares), merged.state)

    def _pair(self, a: Share, b: Share) -> Share:
        records = {n: _merge_records(self.steps.metrics, n, a.records[n], b.records[n]) for n in a.records}
        gradients = {} if self.merger is not None else add_vectors(a.gradients, b.gradients)
        return Share(records, gradients, {n: a.state[n] + b.state[n] for n in a.state})

    def _merge_gradients(self, merger: Merger, shares: Sequence[WeightedShare]) -> Records:
        """Return the merged vectors, one gradient at a time."""
        vectors = {dtype: np.empty_like(vector) for dtype, vector in shares[0].gradients.items()}
        parts = [self.steps.split_gradients(share.gradients) for share in shares]
        weights = [share.weight for share in shares]
        with introduce_errors("merger", merger):
            for address, place in self.steps.split_gradients(vectors).items():
                place[...] = _merge_one(merger, [part[address] for part in parts], weights, address)
        return {dtype: read_only(vector) for dtype, vector in vectors.items()}


def add_vectors(a: Records, b: Records) -> Records:
    """Return the sums of vectors, which are not finite where gradients have overflowed."""
    with np.errstate(invalid="ignore", over="ignore"):
        return {dtype: read_only(vector + b[dtype]) for dtype, vector in a.items()}


def _merge_one(merger: Merger, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
    merged, like = merger.merge(parts, weights, address), parts[0]
    right = isinstance(merged, np.ndarray | np.generic) and (merged.shape, merged.dtype) == (like.shape, like.dtype)
    expect(right, f"merge() must return {like.dtype} of shape {like.shape}, like its parts", merged)
    return np.asarray(merged)


def _merge_records(metrics: Mapping[str, Metric], name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Merge the records of two shards."""
    if not name.startswith(METRICS):
        return np.asarray(a + b)
    own = name.removeprefix(METRICS)
    with introduce_errors(f"metric {own!r}", metrics[own]):
        return read_only(np.asarray(metrics[own].merge(a, b)))


def name_losses(losses: Mapping[int, float]) -> dict[str, float]:
    """Return the values of the workers' local scopes: the loss of the last shard of each."""
    return {f"workers.{worker}.training.loss": loss for worker, loss in losses.items()}


@define(eq=False)
class LocalExchange:
    """All shards are computed in this process, by the threads of a pool if there is one."""

    workers: int = 1
    merger: Merger | None = None
    pool: Executor | None = None
    _losses: dict[int, float] = field(factory=dict, init=False)

    def numbers(self, count: int) -> Sequence[int]:
        """Return the numbers of all shards."""
        return range(count)

    def compute(self, share: Callable[[int], T], numbers: Sequence[int]) -> list[T]:
        """Return the shares of these shards: worker ``k`` of ``n`` computes those of the numbers k, k + n, k + 2 n."""
        if self.pool is None or self.workers == 1:
            return [share(number) for number in numbers]
        parts = [numbers[worker :: self.workers] for worker in range(self.workers)]
        shares = [*self.pool.map(lambda part: [share(number) for number in part], parts)]
        return [shares[n % self.workers][n // self.workers] for n in range(len(numbers))]

    def sum(self, offset: int, parts: Mapping[int, ShardPart], count: int) -> ShardSum:
        """Return the sum of the parts of all shards."""
        every = [parts[number] for number in range(count)]
        return ShardSum(merge_in_tree([part.vectors for part in every], add_vectors), [part.note for part in every])

    def merge(self, steps: Iterations, offset: int, shares: Mapping[int, WeightedShare], count: int) -> Share:
        """Return the share of the whole batch."""
        self._losses = {number % self.workers: share.loss for number, share in shares.items()}
        return ShareMerger(steps, self.merger).merge([shares[number] for number in range(count)])

    def losses(self) -> Mapping[str, float]:
        """Return the loss of the last shard of each worker."""
        return name_losses(self._losses)
