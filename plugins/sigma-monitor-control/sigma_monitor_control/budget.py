"""One budget of work for all clients of a process, whichever way they came: training gets the rest of its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from attrs import define, field


@define(eq=False)
class WorkBudget:
    """A limit on the share of time that all clients of a run take together: how long to sleep after each request.

    Rests are booked one after another: with many clients each waits for its own rest and for those of the others, in
    the order of their work, and no more than ``1 / rest`` of the time is worked in total.

    Args:
        rest: The rest after work, as a multiple of it.
        longest: The seconds that are booked ahead at most.
        clock: The seconds of a steady clock.
    """

    rest: float = 4.0
    longest: float = 10.0
    clock: Callable[[], float] = time.monotonic
    _free: float = field(default=float("-inf"), init=False)  # when the rests that are booked are over
    _seen: WeakKeyDictionary[threading.Thread, float] = field(factory=WeakKeyDictionary, init=False)  # by their clocks
    _gate: threading.Lock = field(factory=threading.Lock, init=False)

    def spend(self, seconds: float) -> float:
        """Book the rest after some seconds of work; return the seconds until it is over."""
        with self._gate:
            now = self.clock()
            self._free = min(max(self._free, now) + self.rest * seconds, now + self.longest)
            return self._free - now

    def spend_thread(self, began: float) -> float:
        """Book the rest after all work of this thread since it last did so, or else since ``began`` of its clock.

        That includes the work between two requests: parsing, packing and sending.
        """
        now, thread = time.thread_time(), threading.current_thread()
        worked = now - self._seen.get(thread, began)
        self._seen[thread] = now
        return self.spend(worked)


PROCESS = WorkBudget()
