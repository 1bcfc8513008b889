"""One budget of work for all clients of a process, whichever way they came: training gets the rest of its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from attrs import define, field


@define(eq=False)
class WorkBudget:
    """Tell whoever has worked for clients how long to rest, so that all of them together leave time to training.

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
    _seen: threading.local = field(factory=threading.local, init=False)
    _gate: threading.Lock = field(factory=threading.Lock, init=False)

    def spend(self, seconds: float) -> float:
        """Book the rest after some seconds of work; return the seconds until it is over."""
        with self._gate:
            now = self.clock()
            self._free = min(max(self._free, now) + self.rest * seconds, now + self.longest)
            return self._free - now

    def spend_thread(self, began: float) -> float:
        """Book the rest after all work of this thread since it last did so, or else since ``began`` of its clock.

        That includes whatever lies between two requests: parsing, packing and sending.
        """
        now = time.thread_time()
        worked = now - getattr(self._seen, "now", began)
        self._seen.__dict__["now"] = now
        return self.spend(worked)


PROCESS = WorkBudget()
