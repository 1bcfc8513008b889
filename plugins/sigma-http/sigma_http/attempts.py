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
