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
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.step.model import GRADIENTS, LAYERS, WEIGHTS, Model

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
    """How batches are cut and worked on; called in place of a session's fused step."""

    shards: int
    workers: int
    merger: Merger
    pool: Executor | None

    def __call__(self, session: Session, batches: Batches) -> Burst:
        """Run whole iterations on the given minibatches; ends early after a loss that is not finite."""
        state, rings = session.arrays, []
        for offset, rows in enumerate(batches.rows):
            merged = self._merged(session, state, batches.block, rows, offset)
            state = _updated(session, state, merged, offset)
            rings.append({name: value for name, value in merged.items() if not name.startswith((GRADIENTS, LAYERS))})
            if not np.isfinite(merged["loss"]):
                break
        return Burst(state, {name: np.stack([ring[name] for ring in rings]) for name in rings[0]}, len(rings))

    def _merged(
        self, session: Session, state: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray, offset: int
    ) -> Records:
        shards = cut(rows, self.shards)
        step, _ = session.programs.get(Model.gradients, len(shards[0].rows))
        unequal = any(name.startswith(WEIGHTS) for name in step.steer)
        weights = _weights(session, state, block, rows, offset) if unequal else {}
        mapped: Callable[..., Any] = map if self.pool is None else self.pool.map
        records: list[Records] = list(mapped(partial(_gradients, session, state, block, offset, weights), shards))
        for i, record in enumerate(records):  # a worker's local scope shows the last shard that it held
            address = f"workers.{i % self.workers}.training.loss"
            session.published[address] = float(record["loss"])
            session.show(address)
        weighted = [_weighted(record, len(s.rows) / len(rows)) for record, s in zip(records, shards, strict=True)]
        return tree(weighted, partial(self._pair, session.model.metrics))

    def _pair(self, metrics: Mapping[str, Metric], a: Records, b: Records) -> Records:
        return {name: self._both(metrics, name, a[name], b[name]) for name in a}

    def _both(self, metrics: Mapping[str, Metric], name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if name.startswith(GRADIENTS):
            return self.merger.merge(a, b)
        return metrics[name.removeprefix(METRICS)].merge(a, b) if name.startswith(METRICS) else a + b


def _weights(
    session: Session, state: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray, offset: int
) -> Records:
    """Return what a row has on average of the weight of a batch, by cost."""
    step, program = session.programs.get(Model.weights, len(rows))
    ring = program.run(state, block, rows[None], session.steer(step, offset=offset), 1).ring
    return {name: values[0] / len(rows) for name, values in ring.items()}


def _gradients(
    session: Session, state: Mapping[str, Any], block: Mapping[str, Any], offset: int, weights: Records, shard: Shard
) -> Records:
    step, program = session.programs.get(Model.gradients, len(shard.rows))
    shares = {name: each * each.dtype.type(len(shard.rows)) for name, each in weights.items()}
    steer = {**session.steer(step, offset=offset), **shares, "shard.row": np.uint32(shard.start)}
    ring = program.run(state, block, shard.rows[None], {name: steer[name] for name in step.steer}, 1).ring
    return {name: values[0] for name, values in ring.items()}


def _weighted(records: Records, weight: float) -> Records:
    """Return a shard's share: means count by its rows, totals of metrics are sums already."""
    return {n: v if n.startswith(METRICS) else (v * v.dtype.type(weight)) for n, v in records.items()}


def _updated(session: Session, state: dict[str, Any], merged: Records, offset: int) -> dict[str, Any]:
    to_device = session.programs.backend.to_device
    step, program = session.programs.get(Model.update)
    placed = {name: to_device(value) for name, value in merged.items() if name.startswith((GRADIENTS, LAYERS))}
    layers = {name: value for name, value in placed.items() if name.startswith(LAYERS)}
    nothing = np.zeros((1, 0), np.int32)
    new = program.run({**state, **placed}, {}, nothing, session.steer(step, offset=offset), 1).state
    return {**{name: new[name] for name in state}, **layers}
