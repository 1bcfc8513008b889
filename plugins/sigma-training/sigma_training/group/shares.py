"""Which worker computes which shards, and who leaves after links were cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence


def assign_shards(shards: int, members: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return the shards of each member: consecutive ones, in numbers that differ by one at most."""
    count = len(members)
    bounds = [-(-shards * place // count) for place in range(count)] + [shards]  # the first of each, and the end
    return {member: tuple(range(*bounds[place : place + 2])) for place, member in enumerate(members)}


def choose_outcasts(cuts: Collection[frozenset[int]]) -> list[int]:
    """Return workers without whom no link is cut: repeatedly that of most cuts, of several the greatest number."""
    outcasts = list[int]()
    while left := [cut for cut in cuts if cut.isdisjoint(outcasts)]:
        outcasts.append(_most_frequent(worker for cut in left for worker in cut))
    return sorted(outcasts)


def _most_frequent(workers: Iterable[int]) -> int:
    counts = Counter(workers)
    return max(counts, key=lambda worker: (counts[worker], worker))
