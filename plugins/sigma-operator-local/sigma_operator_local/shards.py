"""Iterations whose batches are cut into shards: gradients apart, a fixed sum, one update.

The cuts and the order of the sum depend on the number of shards alone, so that any number of workers gives the same
bits.  A shard tells the random numbers which rows of the whole batch it holds.  Costs whose rows do not count alike are
divided by the weight of the whole batch, which is computed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Batches, Burst, Iterations, Merger, Metric, Share

METRICS = "metrics."


@frozen
class Shard:
    """Some rows of a batch, and where they begin in it."""

    rows: np.ndarray
    start: int


def cut(rows: np.ndarray, shards: int) -> list[Shard]:
    """Return at most so many shards of a batch, their sizes differing by one row at most."""
    parts = np.array_split(rows, min(shards, len(rows)))
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    return [Shard(part, int(start)) for part, start in zip(parts, starts, strict=True)]


@frozen
class Sum(Merger):
    """Add gradients up: weighted means over shards make the mean over the batch."""

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sum."""
        total: np.ndarray = a + b
        return total


def tree(values: list[Share], merge: Callable[[Share, Share], Share]) -> Share:
    """Return the shares merged in pairs of neighbours, until one is left."""
    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


@frozen
class Sharding:
    """How batches are cut, and by whom the shards are computed."""

    shards: int
    workers: int
    merger: Merger
    pool: Executor | None

    def __call__(self, steps: Iterations, batches: Batches) -> Burst:
        """Run whole iterations on the given minibatches; ends early after a loss that is not finite."""
        arrays, rings, published = steps.arrays, [], dict[str, float]()
        for offset, rows in enumerate(batches.rows):
            shards = cut(rows, self.shards)
            shares = self._shares(steps, arrays, batches.block, rows, offset, shards)
            published |= self._local(shares)
            weighted = [_weighted(share, len(s.rows) / len(rows)) for share, s in zip(shares, shards, strict=True)]
            merged = tree(weighted, partial(self._pair, steps.metrics))
            arrays = steps.updated(arrays, merged.gradients, merged.state, offset)
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
            return steps.share(arrays, block, shard.rows, shard.start, offset, weights)

        mapped: Callable[..., Any] = map if self.pool is None else self.pool.map
        return list(mapped(share, shards))

    def _local(self, shares: list[Share]) -> dict[str, float]:
        """Return what the workers' local scopes show: the loss of the last shard that each one held."""
        losses = {i % self.workers: float(share.records["loss"]) for i, share in enumerate(shares)}
        return {f"workers.{worker}.training.loss": loss for worker, loss in losses.items()}

    def _pair(self, metrics: Mapping[str, Metric], a: Share, b: Share) -> Share:
        records = {n: _both(metrics, n, a.records[n], b.records[n]) for n in a.records}
        gradients = {n: self.merger.merge(a.gradients[n], b.gradients[n]) for n in a.gradients}
        return Share(records, gradients, {n: a.state[n] + b.state[n] for n in a.state})


def _both(metrics: Mapping[str, Metric], name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a record of two shards together."""
    return metrics[name.removeprefix(METRICS)].merge(a, b) if name.startswith(METRICS) else a + b


def _weighted(share: Share, weight: float) -> Share:
    """Return a share whose means count by its rows; totals of metrics are sums already."""

    def scaled(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {n: v if n.startswith(METRICS) else v * v.dtype.type(weight) for n, v in values.items()}

    return Share(scaled(share.records), scaled(share.gradients), scaled(share.state))
