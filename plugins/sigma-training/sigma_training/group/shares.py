"""Which worker computes which shards, the tree in which shards are added, and who leaves after links were cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def assign_shards(shards: int, members: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return the shards of each member: neighbours, and alike in number but for one, so that subtrees stay together."""
    count = len(members)
    owners = [members[shard * count // shards] for shard in range(shards)]
    return {member: tuple(i for i, owner in enumerate(owners) if owner == member) for member in members}


def sum_in_tree(vectors: Sequence[T]) -> T:
    """Return the sum of the vectors of all shards, pairwise, neighbour by neighbour, whoever computed them."""
    while len(vectors) > 1:
        pairs = [vectors[i : i + 2] for i in range(0, len(vectors), 2)]
        vectors = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]  # type: ignore[operator]
    return vectors[0]


def choose_outcasts(cuts: Collection[frozenset[int]]) -> list[int]:
    """Return workers without whom no link is cut: repeatedly that of most cuts, of several the greatest number."""
    outcasts = list[int]()
    while left := [cut for cut in cuts if cut.isdisjoint(outcasts)]:
        outcasts.append(_most_frequent(worker for cut in left for worker in cut))
    return sorted(outcasts)


def _most_frequent(workers: Iterable[int]) -> int:
    counts = Counter(workers)
    return max(counts, key=lambda worker: (counts[worker], worker))
