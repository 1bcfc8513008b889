"""The sharded step: separate gradients of the shards of a batch, a fixed reduction tree, one update.

The split and the order of the reduction depend only on the number of shards, so that any number of workers gives the
same bits.  A shard passes the position of its rows in the batch to the random numbers.  Costs with weighted rows are
divided by the weight of the whole batch, which is computed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from attrs import frozen

from sigma_kernel import read_only
from sigma_kernel.contracts import Batches, Burst, Iterations, Records, Share
from sigma_kernel.contracts.grouping import ShardPart, ShardSum
from sigma_kernel.errors import SigmaConfigError
from sigma_step.model import WEIGHTS

METRICS = "metrics."
T = TypeVar("T")


class BurstWithdrawn(BaseException):
    """The burst waits for workers, and a command waits for the burst: no error, so that handlers leave it alone."""


@frozen
class WeightedShare(Share):
    """A share whose gradients, records and state are times ``weight``, its share of the rows of the batch.

    ``loss`` is the mean over its own rows.
    """

    weight: float = 1.0
    loss: float = 0.0


class Exchange(Protocol):
    """Who computes which shards, and how their shares become one."""

    @property
    def workers(self) -> int:
        """Return the number of workers that is set, which does not depend on how many compute now."""

    def numbers(self, count: int) -> Sequence[int]:
        """Return the numbers of the shards, of so many, that are computed here."""

    def compute(self, share: Callable[[int], T], numbers: Sequence[int]) -> list[T]:
        """Return the shares of these shards."""

    def sum(self, offset: int, parts: Mapping[int, ShardPart], count: int) -> ShardSum:
        """Return the sum of the parts of so many shards, of which those here are given, for an iteration."""

    def merge(self, steps: Iterations, offset: int, shares: Mapping[int, WeightedShare], count: int) -> Share:
        """Return the share of the whole batch, from those that were computed here."""

    def losses(self) -> Mapping[str, float]:
        """Return the values of the workers' local scopes, of the last merge."""


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
class ShardedStep:
    """Compute bursts in shards of every batch."""

    shards: int
    exchange: Exchange
    counts_rows: bool = False  # gradients are merged by the numbers of rows, so that these must weigh the same

    def __call__(self, steps: Iterations, batches: Batches) -> Burst:
        """Run iterations on the given minibatches; stop early after a loss that is not finite."""
        arrays, rings, published = steps.arrays, list[Records](), dict[str, float]()
        for offset, rows in enumerate(batches.rows):
            count = min(self.shards, len(rows))
            shares = self.compute_shares(steps, arrays, batches, offset, self.exchange.numbers(count))
            merged = self.exchange.merge(steps, offset, shares, count)
            published |= self.exchange.losses()
            arrays = steps.apply_update(arrays, merged.gradients, merged.state, offset)
            rings.append(merged.records)
            if not np.isfinite(merged.records["loss"]):
                break
        ring = {name: np.stack([ring[name] for ring in rings]) for name in rings[0]}
        return Burst(arrays, ring, len(rings), published)

    def compute_shares(
        self, steps: Iterations, arrays: Mapping[str, Any], batches: Batches, offset: int, numbers: Sequence[int]
    ) -> dict[int, WeightedShare]:
        """Return the shares of some shards of the batch of an iteration."""
        rows = batches.rows[offset]
        shards = cut(rows, self.shards)
        weights = steps.weights(arrays, batches.block, rows, len(shards[0].rows), offset)
        if self.counts_rows and any(name.startswith(WEIGHTS) for name in weights):
            raise SigmaConfigError(
                "merger: the rows of these data have weights, which only the sum of gradients takes into account. Leave"
                " out the merger, or the weights."
            )

        def share(number: int) -> Share:
            shard, lane = shards[number], batches.lane_of(number)
            return steps.share(arrays, lane.block, shard.rows - lane.first, shard.start, len(rows), offset, weights)

        shares = zip(numbers, self.exchange.compute(share, numbers), strict=True)
        return {number: weigh_share(each, len(shards[number].rows) / len(rows)) for number, each in shares}


def weigh_share(share: Share, weight: float) -> WeightedShare:
    """Return a share weighted by its rows, as its gradients are; totals of metrics are sums already."""

    def scale_values(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        products = {n: v if n.startswith(METRICS) else v * v.dtype.type(weight) for n, v in values.items()}
        return {n: read_only(np.asarray(v)) for n, v in products.items()}

    gradients = {dtype: read_only(vector) for dtype, vector in share.gradients.items()}
    records, state = scale_values(share.records), scale_values(share.state)
    return WeightedShare(records, gradients, state, weight, float(share.records["loss"]))
