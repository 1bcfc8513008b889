"""Compute the shards of an order, and exchange them with other workers over a channel."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence

from attrs import define, field

from sigma_kernel.contracts import Iterations, Share
from sigma_kernel.contracts.grouping import Channel, ComputeOrder, Position, ShardPart, ShardSum
from sigma_kernel.errors import SigmaStateError
from sigma_training.group.merging import ShareMerger, name_losses
from sigma_training.group.sharding import T, WeightedShare

WAIT = 0.05  # seconds after which a worker looks whether its burst was dropped


class BurstDropped(SigmaStateError):
    """The burst that a worker computes is no longer wanted."""


@define(eq=False)
class ChannelExchange:
    """The shards of an order are computed here, the others elsewhere; a channel sums the gradients.

    Args:
        channel: The channel.
        order: What is computed, and by whom.
        worker: The number of this worker.
        is_dropped: Whether the burst is no longer wanted.
    """

    channel: Channel
    order: ComputeOrder
    worker: int
    is_dropped: Callable[[], bool]
    _losses: Mapping[int, float] = field(factory=dict, init=False)

    @property
    def workers(self) -> int:
        """Return the number of workers that is set, which does not depend on deaths."""
        return int(self.order.live["workers"])

    def numbers(self, count: int) -> Sequence[int]:
        """Return the numbers of the shards of this worker."""
        return [number for number in self.order.shards[self.worker] if number < count]

    def compute(self, share: Callable[[int], T], numbers: Sequence[int]) -> list[T]:
        """Return the shares of these shards."""
        return [share(number) for number in numbers]

    def sum(self, offset: int, parts: Mapping[int, ShardPart], count: int) -> ShardSum:
        """Return the sum of the parts of all shards; raise BurstDropped once it is no longer wanted."""
        begin = self.order.commit.position
        position = Position(begin.epoch, begin.iteration + offset, begin.version)
        while (total := self.channel.sum(self.order, position, parts, count, WAIT)) is None:
            if self.is_dropped():
                raise BurstDropped("the burst is no longer wanted.")
        return total

    def merge(self, steps: Iterations, offset: int, shares: Mapping[int, WeightedShare], count: int) -> Share:
        """Return the share of the whole batch."""
        total = self.sum(offset, {number: _pack(share) for number, share in shares.items()}, count)
        others = [pickle.loads(note) for note in total.notes]
        self._losses = {number % self.workers: share.loss for number, share in enumerate(others)}
        merged = ShareMerger(steps).merge(others)
        return Share(merged.records, total.vectors, merged.state)

    def losses(self) -> Mapping[str, float]:
        """Return the loss of the last shard of each worker."""
        return name_losses(self._losses)


def _pack(share: WeightedShare) -> ShardPart:
    """Return the part of a shard: its gradients as vectors, all other values as a pickled note."""
    rest = WeightedShare(share.records, {}, share.state, share.weight, share.loss)
    return ShardPart(share.gradients, pickle.dumps(rest, protocol=5))
