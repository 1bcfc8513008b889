"""Adapt the number of iterations per burst to a time limit."""

from __future__ import annotations

from attrs import define


@define
class Pace:
    """Bound the duration of bursts.

    A burst has at most twice the iterations of the one before, so that the first ones, slowed by compilation and cold
    caches, are short, and none is much longer than the limit.  The division into bursts does not affect results.
    """

    seconds: float
    most: int = 1

    def limit_burst(self, n: int) -> int:
        """Return ``n``, or fewer iterations if no more are expected to fit."""
        return min(n, self.most)

    def learn(self, done: int, took: float) -> None:
        """Update the estimate from the duration of a burst."""
        fitting = int(done * self.seconds / took) if took > 0 else 2 * self.most
        self.most = max(1, min(fitting, 2 * self.most))
