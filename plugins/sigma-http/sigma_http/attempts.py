"""Limit how often a peer may try a key."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from attrs import define, field

PEERS = 1000  # peers whose wrong keys are counted
TRIES, PER_SECOND = 10, 1.0  # wrong keys answered at once, and the rate at which this allowance recovers


@define(eq=False)
class Attempts:
    """The wrong keys of each peer.

    Args:
        clock: A monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _tries: OrderedDict[str, tuple[float, float]] = field(factory=OrderedDict, init=False)  # allowance, time by peer

    def may_try(self, peer: str = "") -> bool:
        """Return whether a peer may try another key now; wrong keys are rate-limited per peer."""
        return self._tries_left(peer) >= 1

    def count_failure(self, peer: str = "") -> None:
        """Count a wrong key of a peer; beyond the limit of peers, the least recent one is dropped."""
        self._tries[peer] = (self._tries_left(peer) - 1, self.clock())
        self._tries.move_to_end(peer)
        while len(self._tries) > PEERS:
            self._tries.popitem(last=False)

    def _tries_left(self, peer: str) -> float:
        now = self.clock()
        left, since = self._tries.get(peer, (TRIES, now))
        return min(TRIES, left + (now - since) * PER_SECOND)


FREE, FIRST, LONGEST = 3, 1.0, 300.0  # wrong passwords without a delay; seconds of the first delay, and of the longest
MOST_LETTERS = 64  # of a name
FORGOTTEN = 3600.0  # seconds without a wrong password, after which a peer begins anew


@define(eq=False)
class GrowingDelays:
    """The wrong passwords of each peer: after a few, each doubles the time until the next may be tried.

    Args:
        clock: A monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _failures: OrderedDict[str, tuple[Counter[str], float]] = field(factory=OrderedDict, init=False)  # time of the last

    def wait(self, peer: str) -> float:
        """Return the seconds until a peer may try a password; 0 if it may now."""
        counts, last = self._counts(peer)
        delay = 0.0 if counts.total() < FREE else min(LONGEST, FIRST * 2.0 ** min(counts.total() - FREE, 30))
        return max(0.0, last + delay - self.clock())

    def count_failure(self, peer: str, name: str = "") -> None:
        """Count a wrong password of a peer for a name; beyond the limit of peers, the least recent one is dropped."""
        self._failures[peer] = (self._counts(peer)[0] + Counter([name[:MOST_LETTERS]]), self.clock())
        self._failures.move_to_end(peer)
        while len(self._failures) > PEERS:
            self._failures.popitem(last=False)

    def forget(self, peer: str, name: str = "") -> None:
        """Drop the wrong passwords of a peer for a name, to which it has given the right one; others still count."""
        counts, last = self._counts(peer)
        self._failures[peer] = (Counter({other: count for other, count in counts.items() if other != name}), last)

    def _counts(self, peer: str) -> tuple[Counter[str], float]:
        """Return the number of failures of a peer by name, and the time of the last."""
        counts, last = self._failures.get(peer, (Counter[str](), 0.0))
        return (counts, last) if self.clock() - last < FORGOTTEN else (Counter(), last)
