"""How many iterations fit into a burst: learnt from the last ones."""

from __future__ import annotations

from attrs import define


@define
class Pace:
    """Bound bursts in time.

    A burst at most doubles from one to the next, so that the first ones, slowed by compilation and cold caches, are
    short, and none is much longer than it should be.  How iterations are cut into bursts changes nothing else.
    """

    seconds: float
    most: int = 1

    def bounded(self, n: int) -> int:
        """Return ``n``, or as many iterations as are expected to fit."""
        return min(n, self.most)

    def learn(self, done: int, took: float) -> None:
        """Take the time of a burst into account."""
        fitting = int(done * self.seconds / took) if took > 0 else 2 * self.most
        self.most = max(1, min(fitting, 2 * self.most))
