"""Local training: a replica on each shard, with slots of its own, and their mean at the end of each round.

A round is some iterations. It begins with one state; each replica trains from it on its shard of every batch, as if
that were the whole. At the end, parameters, slots and layer state become the means over all replicas, weighted by rows
(federated averaging, McMahan et al. 2017; of slots, Yu et al. 2019). So a state is one between rounds, and does not
depend on who computes: replicas belong to shards, and the differences of what they change are added in the fixed tree
over these.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Batches, Burst, Compute, Iterations, Records, Share
from sigma_kernel.contracts.grouping import ShardPart
from sigma_step.steps import compute_fused
from sigma_training.group.merging import ShareMerger, name_losses
from sigma_training.group.sharding import Exchange, ShardedStep, WeightedShare, cut, weigh_share


def whole_rounds(n: int, done: int, every: int) -> int:
    """Return ``n`` iterations, or as many more as end a round; ``done`` are those of the epoch before.

    Without rounds, ``every`` is 0.
    """
    return n + -(done + n) % every if every else n


@frozen
class AveragedStep:
    """Compute bursts of whole rounds, by a replica on each shard.

    Args:
        shards: Parts of every batch, and so replicas; a batch of fewer rows has fewer.
        every: Iterations of a round, counted from the beginning of the epoch; the end of a burst ends one, too.
        exchange: Who trains which replicas.
    """

    shards: int
    every: int
    exchange: Exchange

    def __call__(self, steps: Iterations, batches: Batches) -> Burst:
        """Run iterations on the given minibatches; stop early after a round with a loss that is not finite."""
        state, rings, published, n = steps.to_host(steps.arrays), list[Records](), dict[str, float](), len(batches.rows)
        while len(rings) < n:
            begin = len(rings)
            end = min(begin + self.every - (steps.iteration_in_epoch + begin) % self.every, n)
            state, records, losses = self._run_round(steps, state, batches, range(begin, end))
            rings += records
            published |= losses
            if not all(np.isfinite(each["loss"]) for each in records):
                break
        ring = {name: np.stack([ring[name] for ring in rings]) for name in rings[0]}
        return Burst(steps.place(state), ring, len(rings), published)

    def _run_round(
        self, steps: Iterations, state: Records, batches: Batches, offsets: range
    ) -> tuple[Records, list[Records], dict[str, float]]:
        """Return the state after a round, what each iteration measured, and the loss of each worker."""
        count = min(self.shards, batches.rows.shape[1])

        def train(number: int) -> ShardPart:
            return self._train_replica(steps, state, batches, offsets, number)

        numbers = self.exchange.numbers(count)
        parts = dict(zip(numbers, self.exchange.compute(train, numbers), strict=True))
        total = self.exchange.sum(offsets[-1], parts, count)
        notes = [pickle.loads(note) for note in total.notes]
        merger = ShareMerger(steps)
        records = [merger.merge(shares).records for shares in zip(*(shares for shares, _ in notes), strict=True)]
        losses = name_losses({n % self.exchange.workers: shares[-1].loss for n, (shares, _) in enumerate(notes)})
        changed = {name: state[name] for name in steps.written_names}
        return {**state, **_add(changed, total.vectors), **notes[0][1]}, records, losses

    def _train_replica(
        self, steps: Iterations, state: Records, batches: Batches, offsets: range, number: int
    ) -> ShardPart:
        """Return how a round of a replica changes its state, times its part of the rows, and what it measures."""
        arrays, shares, weight, lane = steps.place(state), list[WeightedShare](), 0.0, batches.lane_of(number)
        for offset in offsets:
            rows = batches.rows[offset]
            shard = cut(rows, self.shards)[number]
            own, weight = shard.rows - lane.first, len(shard.rows) / len(rows)
            weights = steps.weights(arrays, lane.block, own, len(own), offset)
            share = steps.share(arrays, lane.block, own, shard.start, len(own), offset, weights)
            arrays = steps.apply_update(arrays, share.gradients, share.state, offset)
            shares.append(weigh_share(Share(share.records, {}, {}), weight))
        new = steps.to_host({name: arrays[name] for name in steps.written_names})
        counts = {name: value for name, value in new.items() if not _is_averaged(value)}
        return ShardPart(_subtract(new, state, weight), pickle.dumps((shares, counts), protocol=5))


def choose_step(shards: int, every: int, exchange: Exchange, counts_rows: bool = False) -> Compute:
    """Return what computes bursts: in whole batches, in shards, or by replicas that are averaged ``every`` so often."""
    if shards == 1:
        return compute_fused
    return AveragedStep(shards, every, exchange) if every else ShardedStep(shards, exchange, counts_rows)


def _is_averaged(value: np.ndarray) -> bool:
    """Return whether an array has a mean; counters and keys have not, and are those of the first replica."""
    return value.dtype.kind == "f"


def _names_by_dtype(state: Records) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name in sorted(state):
        if _is_averaged(state[name]):
            names.setdefault(state[name].dtype.name, []).append(name)
    return names


def _subtract(new: Records, state: Records, weight: float) -> Records:
    """Return the weighted differences of all averaged arrays, as one vector of each dtype."""
    with np.errstate(invalid="ignore", over="ignore"):
        return {
            dtype: np.concatenate(
                [((new[n] - _keep_finite(state[n])) * new[n].dtype.type(weight)).reshape(-1) for n in names]
            )
            for dtype, names in _names_by_dtype(new).items()
        }


def _add(state: Records, vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the averaged arrays plus the sums of differences: what no replica has changed stays to the bit."""
    result = dict[str, np.ndarray]()
    with np.errstate(invalid="ignore", over="ignore"):
        for dtype, names in _names_by_dtype(state).items():
            ends = np.cumsum([state[name].size for name in names])[:-1]
            for name, change in zip(names, np.split(vectors[dtype], ends), strict=True):
                result[name] = _keep_finite(state[name]) + change.reshape(state[name].shape)
    return result


def _keep_finite(values: np.ndarray) -> np.ndarray:
    """Return values with 0 where they are infinite, as slots may begin: what differences are taken from."""
    return np.asarray(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))
