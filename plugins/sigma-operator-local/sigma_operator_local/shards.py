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

from sigma_kernel.contracts import Burst, Merger, Metric
from sigma_kernel.training.data.feed import Batches
from sigma_kernel.training.step.model import GRADIENTS, LAYERS
from sigma_kernel.training.step.steps import Steps

Records = dict[str, np.ndarray]
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


def tree(values: list[Records], merge: Callable[[Records, Records], Records]) -> Records:
    """Return the records merged in pairs of neighbours, until one is left."""
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

    def __call__(self, steps: Steps, batches: Batches) -> Burst:
        """Run whole iterations on the given minibatches; ends early after a loss that is not finite."""
        arrays, rings, published = steps.arrays, [], dict[str, float]()
        for offset, rows in enumerate(batches.rows):
            records, shards = self._records(steps, arrays, batches.block, rows, offset)
            published |= self._local(records)
            weighted = [_weighted(record, len(s.rows) / len(rows)) for record, s in zip(records, shards, strict=True)]
            merged = tree(weighted, partial(self._pair, steps.metrics))
            arrays = steps.updated(arrays, merged, offset)
            rings.append({name: value for name, value in merged.items() if not name.startswith((GRADIENTS, LAYERS))})
            if not np.isfinite(merged["loss"]):
                break
        ring = {name: np.stack([ring[name] for ring in rings]) for name in rings[0]}
        return Burst(arrays, ring, len(rings), published)

    def _records(
        self, steps: Steps, arrays: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray, offset: int
    ) -> tuple[list[Records], list[Shard]]:
        shards = cut(rows, self.shards)
        weights = steps.weights(arrays, block, rows, len(shards[0].rows), offset)

        def gradients(shard: Shard) -> Records:
            return steps.gradients(arrays, block, shard.rows, shard.start, offset, weights)

        mapped: Callable[..., Any] = map if self.pool is None else self.pool.map
        return list(mapped(gradients, shards)), shards

    def _local(self, records: list[Records]) -> dict[str, float]:
        """Return what the workers' local scopes show: the loss of the last shard that each one held."""
        losses = {i % self.workers: float(record["loss"]) for i, record in enumerate(records)}
        return {f"workers.{worker}.training.loss": loss for worker, loss in losses.items()}

    def _pair(self, metrics: Mapping[str, Metric], a: Records, b: Records) -> Records:
        return {name: self._both(metrics, name, a[name], b[name]) for name in a}

    def _both(self, metrics: Mapping[str, Metric], name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if name.startswith(GRADIENTS):
            return self.merger.merge(a, b)
        return metrics[name.removeprefix(METRICS)].merge(a, b) if name.startswith(METRICS) else a + b


def _weighted(records: Records, weight: float) -> Records:
    """Return a shard's share: means count by its rows, totals of metrics are sums already."""
    return {n: v if n.startswith(METRICS) else (v * v.dtype.type(weight)) for n, v in records.items()}
