"""Data parallelism over shards of a batch: separate gradients, a fixed reduction tree, one update.

The split and the order of the reduction depend only on the number of shards, so that any number of workers gives the
same bits.  A shard passes the position of its rows in the batch to the random numbers.  Costs with weighted rows are
divided by the weight of the whole batch, which is computed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel import read_only
from sigma_kernel.contracts import Batches, Burst, Iterations, Merger, Metric, Records, Share, merge_in_tree
from sigma_kernel.errors import expect, introduce_errors

METRICS = "metrics."


@frozen
class Shard:
    """Some rows of a batch, and the position of the first one in it."""

    rows: np.ndarray
    start: int


def cut(rows: np.ndarray, shards: int) -> list[Shard]:
    """Return at most ``shards`` shards of a batch, whose sizes differ by at most one row."""
    parts = np.array_split(rows, min(shards, len(rows)))
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    return [Shard(part, int(start)) for part, start in zip(parts, starts, strict=True)]


@frozen
class Sum(Merger):
    """Sum gradients: weighted means over shards add up to the mean over the batch."""

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sum, which is not finite if the gradients of a shard have overflowed."""
        with np.errstate(invalid="ignore", over="ignore"):
            total: np.ndarray = a + b
        return total


@frozen
class Sharding:
    """Split batches into shards, compute them on workers, and merge them."""

    shards: int
    workers: int
    merger: Merger
    pool: Executor | None

    def __call__(self, steps: Iterations, batches: Batches) -> Burst:
        """Run iterations on the given minibatches; stop early after a loss that is not finite."""
        arrays, rings, published = steps.arrays, [], dict[str, float]()
        for offset, rows in enumerate(batches.rows):
            shards = cut(rows, self.shards)
            shares = self._shares(steps, arrays, batches.block, rows, offset, shards)
            published |= self._local(shares)
            weighted = [_weigh_share(share, len(s.rows) / len(rows)) for share, s in zip(shares, shards, strict=True)]
            merged = merge_in_tree(weighted, partial(self._pair, steps))
            arrays = steps.apply_update(arrays, merged.gradients, merged.state, offset)
            rings.append(merged.records)
            if not np.isfinite(merged.records["loss"]):
                break
        ring = {name: np.stack([ring[name] for ring in rings]) for name in rings[0]}
        return Burst(arrays, ring, len(rings), published)

    def _shares(
        self,
        steps: Iterations,
        arrays: Mapping[str, Any],
        block: Mapping[str, Any],
        rows: np.ndarray,
        offset: int,
        shards: list[Shard],
    ) -> list[Share]:
        weights = steps.weights(arrays, block, rows, len(shards[0].rows), offset)

        def share(shard: Shard) -> Share:
            return steps.share(arrays, block, shard.rows, shard.start, len(rows), offset, weights)

        mapped: Callable[..., Any] = map if self.pool is None else self.pool.map
        return list(mapped(share, shards))

    def _local(self, shares: list[Share]) -> dict[str, float]:
        """Return the values of the workers' local scopes: the loss of the last shard of each worker."""
        losses = {i % self.workers: float(share.records["loss"]) for i, share in enumerate(shares)}
        return {f"workers.{worker}.training.loss": loss for worker, loss in losses.items()}

    def _pair(self, steps: Iterations, a: Share, b: Share) -> Share:
        records = {n: _merge_records(steps.metrics, n, a.records[n], b.records[n]) for n in a.records}
        with introduce_errors("merger", self.merger):
            gradients = self._merge_gradients(steps, a.gradients, b.gradients)
        return Share(records, gradients, {n: a.state[n] + b.state[n] for n in a.state})

    def _merge_gradients(self, steps: Iterations, a: Records, b: Records) -> Records:
        """Return the merged vectors: whole ones are summed at once, another merger is given one gradient at a time."""
        if type(self.merger) is Sum:
            return {dtype: read_only(self.merger.merge(vector, b[dtype])) for dtype, vector in a.items()}
        vectors = {dtype: np.empty_like(vector) for dtype, vector in a.items()}
        left, right = steps.split_gradients(a), steps.split_gradients(b)
        for address, place in steps.split_gradients(vectors).items():
            place[...] = self._merge_one(left[address], right[address])
        return {dtype: read_only(vector) for dtype, vector in vectors.items()}

    def _merge_one(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        merged = self.merger.merge(a, b)
        right = isinstance(merged, np.ndarray | np.generic) and (merged.shape, merged.dtype) == (a.shape, a.dtype)
        expect(right, f"merge() must return {a.dtype} of shape {a.shape}, like its operands", merged)
        return np.asarray(merged)


def _merge_records(metrics: Mapping[str, Metric], name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Merge the records of two shards."""
    if not name.startswith(METRICS):
        return np.asarray(a + b)
    own = name.removeprefix(METRICS)
    with introduce_errors(f"metric {own!r}", metrics[own]):
        return read_only(np.asarray(metrics[own].merge(a, b)))


def _weigh_share(share: Share, weight: float) -> Share:
    """Return a share weighted by its rows, as its gradients are; totals of metrics are sums already."""

    def scale_values(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        products = {n: v if n.startswith(METRICS) else v * v.dtype.type(weight) for n, v in values.items()}
        return {n: read_only(np.asarray(v)) for n, v in products.items()}

    gradients = {dtype: read_only(vector) for dtype, vector in share.gradients.items()}
    return Share(scale_values(share.records), gradients, scale_values(share.state))
