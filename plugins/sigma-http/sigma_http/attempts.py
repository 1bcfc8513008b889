"""Limit how often a peer may try a key."""

from __future__ import annotations

import time
from collections import OrderedDict
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
FORGOTTEN = 3600.0  # seconds without a wrong password, after which a peer begins anew


@define(eq=False)
class GrowingDelays:
    """The wrong passwords of each peer: after a few, each doubles the time until the next may be tried.

    Args:
        clock: A monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _failures: OrderedDict[str, tuple[int, float]] = field(factory=OrderedDict, init=False)  # number, time of the last

    def wait(self, peer: str) -> float:
        """Return the seconds until a peer may try a password; 0 if it may now."""
        count, last = self._count(peer)
        delay = 0.0 if count < FREE else min(LONGEST, FIRST * 2.0 ** min(count - FREE, 30))
        return max(0.0, last + delay - self.clock())

    def count_failure(self, peer: str) -> None:
        """Count a wrong password of a peer; beyond the limit of peers, the least recent one is dropped."""
        self._failures[peer] = (self._count(peer)[0] + 1, self.clock())
        self._failures.move_to_end(peer)
        while len(self._failures) > PEERS:
            self._failures.popitem(last=False)

    def forget(self, peer: str) -> None:
        """Begin anew with a peer that has given a right password."""
        self._failures.pop(peer, None)

    def _count(self, peer: str) -> tuple[int, float]:
        count, last = self._failures.get(peer, (0, 0.0))
        return (count, last) if self.clock() - last < FORGOTTEN else (0, last)
