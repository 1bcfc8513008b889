"""Choose the number of threads of the next burst: next to other busy processes, one thread may be faster.

If several bursts in a row take much longer than the best, one burst runs on a single thread; if that was faster, the
next ones do too, for a while.  Otherwise nothing is tried.
"""

from __future__ import annotations

from collections import deque
from math import inf

from attrs import define, field

SLOW = 1.5  # times the best: a burst on a machine whose cores are contended
SEEN = 3  # slow bursts in a row before another number of threads is tried
WHILE = 24  # bursts until the next trial
WORTH = 1e-4  # seconds of a call on one thread from which on to wake others may be worth it
AGAIN = 32  # calls until the slower way is tried again


@define
class ThreadCount:
    """The number of threads for the bursts of one program, chosen by their seconds per step."""

    _best: float = field(default=inf, init=False)
    _recent: deque[float] = field(factory=lambda: deque([0.0], SEEN), init=False)
    _alone: int = field(default=0, init=False)  # bursts still to run on one thread
    _calm: int = field(default=0, init=False)  # bursts until the next trial

    def threads(self, wanted: int) -> int:
        """Return how many threads the next burst should use."""
        return 1 if self._alone else wanted

    def note(self, threads: int, seconds: float) -> None:
        """Record the seconds per step of a burst."""
        if threads == 1:
            self._judge(seconds)
            return
        self._best = min(self._best, seconds)
        self._recent.append(seconds)
        self._calm = max(self._calm - 1, 0)
        if not self._calm and min(self._recent) > SLOW * self._best:
            self._alone = 1

    def _judge(self, seconds: float) -> None:
        """Compare a burst on one thread with those before it."""
        if self._alone > 1:
            self._alone -= 1
        elif self._alone == 1:
            ended = self._recent[-1] == 0.0  # the single-thread period has ended: try several threads again
            faster = not ended and seconds < min(self._recent)
            self._alone = WHILE if faster else 0
            self._calm = 0 if faster or ended else WHILE
            self._recent = deque([0.0], SEEN)


@define
class CallThreads:
    """Whether single calls of a program, between which its threads sleep, use one thread or several.

    The first calls use one.  If they take long enough, the way that took less time lately is used.
    """

    _seconds: list[float] = field(factory=lambda: [0.0, 0.0], init=False)  # on one thread, and on several
    _calls: int = field(default=0, init=False)

    @property
    def is_short(self) -> bool:
        """Return whether the program is over before other threads would be awake."""
        return self._calls >= SEEN and self._seconds[0] < WORTH

    def wants_several(self) -> bool:
        """Return whether the next call should use several threads."""
        self._calls += 1
        alone, shared = self._seconds
        if self._calls <= SEEN or alone < WORTH:
            return False
        return (shared < alone) != (self._calls % AGAIN == 0)

    def note(self, several: bool, seconds: float) -> None:
        """Record the seconds of a call: less at once, more little by little, as a call may have been interrupted."""
        before = self._seconds[several]
        more = before + (min(seconds, 2 * before) - before) / 4
        self._seconds[several] = seconds if seconds < before or not before else more
