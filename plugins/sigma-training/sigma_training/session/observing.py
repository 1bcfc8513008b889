"""Observe an iteration for hooks: gradients, updates, activations and rows, of the whole batch and of each worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sigma_kernel.contracts import Batches, merge_in_tree
from sigma_kernel.contracts.compute import Records
from sigma_kernel.registry.addresses import matches
from sigma_step.model import ACTIVATIONS, GRADIENTS, UPDATES
from sigma_step.steps import Steps
from sigma_training.group.sharding import Shard, cut
from sigma_training.hooks.order import ROWS, SHARDS, within_shard
from sigma_training.session.goals import steps_to_end
from sigma_training.session.state import Present


def observe(run: Present, last: Batches, wanted: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """Return the observed values of the next iteration, on one batch, by address.

    ``wanted`` are addresses by the scope of the hooks that read them; values of a worker are below ``workers.<n>.``.
    """
    setup, shards, local = run.setup, run.setup.operator.shards, wanted.get("local", ())
    numbers = setup.feed.numbers(run.state.cursor)[last.rows[0]]
    shared = [address for address in local if shards == 1 or address.startswith(UPDATES)]  # by all workers
    values = setup.evaluator.observe(steps_to_end(run), last, (*wanted.get("global", ()), *shared))
    if local and shards > 1:
        own = [name for name in setup.model.observable(local) if not name.startswith(UPDATES)]
        values |= observe_workers(steps_to_end(run), last, numbers, own, shards, run.state.workers(setup))
    if of_shards := [address for address in wanted.get("global", ()) if within_shard(address)]:
        values |= observe_shards(steps_to_end(run), last, numbers, of_shards, shards)
    return {ROWS: numbers, **values}


def observe_shards(
    steps: Steps, at: Batches, numbers: np.ndarray, wanted: Sequence[str], shards: int
) -> dict[str, np.ndarray]:
    """Return what shards have of the next iteration, on one batch, by ``shards.<n>.`` and the address.

    Gradients are those of the mean loss over the rows of a shard; ``rows`` are their ``numbers``, given for the batch.
    """
    rows, observed = at.rows[0], dict[str, np.ndarray]()
    names = steps.programs.model.observable([within_shard(address) for address in wanted])
    names = tuple(name for name in names if name.startswith(GRADIENTS))
    parts = cut(rows, shards)
    weights = steps.weights(steps.arrays, at.block, rows, len(parts[0].rows), 0) if names else {}
    for number, part in enumerate(parts):
        own = {"rows": numbers[part.start : part.start + len(part.rows)]}
        own |= _observe(steps, at, part, len(part.rows), weights, names)
        observed |= {f"{SHARDS}{number}.{name}": value for name, value in own.items()}
    return {name: x for name, x in observed.items() if any(matches(pattern, name) for pattern in wanted)}


def observe_workers(
    steps: Steps, at: Batches, numbers: np.ndarray, wanted: Sequence[str], shards: int, workers: int
) -> dict[str, np.ndarray]:
    """Return what workers have of the next iteration, on one batch, by ``workers.<n>.`` and the address.

    Gradients are those of the mean loss over the rows of a worker, activations have these rows, in the order of shards;
    ``batch.rows`` are their ``numbers``, given for all rows of the batch.
    """
    rows = at.rows[0]
    parts, observed = cut(rows, shards), dict[str, np.ndarray]()
    weights = steps.weights(steps.arrays, at.block, rows, len(parts[0].rows), 0) if wanted else {}
    for worker in range(min(workers, len(parts))):
        own, scope = parts[worker::workers], f"workers.{worker}."
        observed[scope + ROWS] = np.concatenate([numbers[part.start : part.start + len(part.rows)] for part in own])
        every = [_observe(steps, at, part, len(observed[scope + ROWS]), weights, wanted) for part in own]
        observed |= {scope + name: value for name, value in merge_in_tree(every, _merge).items()}
    return observed


def _observe(steps: Steps, at: Batches, part: Shard, total: int, weights: Records, wanted: Sequence[str]) -> Records:
    """Return what a shard adds to the values of its worker; those of costs are means over its rows."""
    if not wanted:
        return {}
    values = steps.observe_shard(at.block, part.rows, part.start, total, weights, wanted)
    share = len(part.rows) / total
    return {n: x * x.dtype.type(share) if _is_mean(n, x) else x for n, x in values.items()}


def _is_mean(name: str, value: np.ndarray) -> bool:
    return name.startswith(ACTIVATIONS) and not value.ndim


def _merge(a: Records, b: Records) -> Records:
    joined = {name for name, value in a.items() if name.startswith(ACTIVATIONS) and value.ndim}
    return {n: np.concatenate([x, b[n]]) if n in joined else np.asarray(x + b[n]) for n, x in a.items()}
