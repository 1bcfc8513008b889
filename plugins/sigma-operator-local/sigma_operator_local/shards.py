"""Iterations whose batches are cut into shards: gradients apart, a fixed sum, one update.

The cuts and the order of the sum depend on the number of shards alone, so that any number of workers gives the same
bits.  A shard tells the random numbers which rows of the whole batch it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Burst
from sigma_kernel.training.feed import Batches
from sigma_kernel.training.session import Session
from sigma_kernel.training.step import GRADIENTS, LAYERS

Records = dict[str, np.ndarray]


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


def tree_sum(values: list[Records]) -> Records:
    """Return the sum of equally named arrays, added in pairs of neighbours."""
    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [{k: pair[0][k] + pair[1][k] for k in pair[0]} if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


def burst(session: Session, batches: Batches, pool: Executor | None, shards: int, workers: int) -> Burst:
    """Run whole iterations on the given minibatches; ends early after a loss that is not finite."""
    state, rings = session.arrays, []
    for offset, rows in enumerate(batches.rows):
        merged, state = _iteration(session, state, batches.block, cut(rows, shards), pool, workers, offset)
        rings.append(merged)
        if not np.isfinite(merged["loss"]):
            break
    ring = {name: np.stack([record[name] for record in rings]) for name in rings[0]}
    return Burst(state, ring, len(rings))


def _iteration(
    session: Session,
    state: dict[str, Any],
    block: Mapping[str, Any],
    shards: list[Shard],
    pool: Executor | None,
    workers: int,
    offset: int,
) -> tuple[Records, dict[str, Any]]:
    work = partial(_gradients, session, state, block, offset)
    mapped: Callable[..., Any] = map if pool is None else pool.map
    records = list(mapped(work, shards))
    _tell_workers(session, records, workers)
    rows = sum(len(shard.rows) for shard in shards)
    merged = tree_sum([_weighted(r, len(s.rows) / rows) for r, s in zip(records, shards, strict=True)])
    return _recorded(merged), _updated(session, state, merged, offset)


def _gradients(
    session: Session, state: Mapping[str, Any], block: Mapping[str, Any], offset: int, shard: Shard
) -> Records:
    step, program = session.program("gradients", len(shard.rows))
    steer = {**session.steer(step, offset=offset), "shard.row": np.uint32(shard.start)}
    ring = program.run(state, block, shard.rows[None], {name: steer[name] for name in step.steer}, 1).ring
    return {name: values[0] for name, values in ring.items()}


def _weighted(records: Records, weight: float) -> Records:
    """Return a shard's share: means count by its rows, totals of metrics are sums already."""
    return {n: v if n.startswith("metrics.") else (v * v.dtype.type(weight)) for n, v in records.items()}


def _recorded(merged: Records) -> Records:
    return {name: value for name, value in merged.items() if not name.startswith((GRADIENTS, LAYERS))}


def _updated(session: Session, state: dict[str, Any], merged: Records, offset: int) -> dict[str, Any]:
    to_device = session.programs.backend.to_device
    step, program = session.program("update", 0)
    placed = {name: to_device(value) for name, value in merged.items() if name.startswith((GRADIENTS, LAYERS))}
    layers = {name: value for name, value in placed.items() if name.startswith(LAYERS)}
    nothing = np.zeros((1, 0), np.int32)
    new = program.run({**state, **placed}, {}, nothing, session.steer(step, offset=offset), 1).state
    return {**{name: new[name] for name in state}, **layers}


def _tell_workers(session: Session, records: list[Records], workers: int) -> None:
    """Publish in each worker's local scope the loss of the last shard it held."""
    for i, record in enumerate(records):
        session.published[f"workers.{i % workers}.training.loss"] = float(record["loss"])
