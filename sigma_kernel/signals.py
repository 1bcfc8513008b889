"""Handle process signals (Ctrl-C, SIGTERM, SIGUSR1): record them on arrival, act on them at a safe point of the run."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from math import inf
from types import FrameType, TracebackType
from typing import Any

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
SAVING = tuple(getattr(signal, name) for name in ("SIGUSR1",) if hasattr(signal, name))
PATIENCE = 2  # ending signals that leave time to save
TWICE = 0.2  # seconds: programs such as timeout send one signal to the process and again to its group


EARLY = deque[int]()  # signals before training, whose KeyboardInterrupt Python may have dropped, as in a destructor


def terminate(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt as Ctrl-C does, with the signal's number for the exit code."""
    EARLY.append(number)
    raise KeyboardInterrupt(number)


class Signals:
    """Record signals within the context, in the main thread; signals already handled or ignored are left alone.

    ``heed`` is called with each. After more than ``PATIENCE`` ending signals, KeyboardInterrupt is raised wherever the
    main thread is.
    """

    # without attrs: the command imports this module first, and help does not need attrs
    def __init__(self, heed: Callable[[int], None]) -> None:
        self.heed = heed
        self.ending = 0  # number of ending signals
        self._last = -inf  # time of the last one
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (*ENDING, *SAVING):
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, terminate):
                    self._before[number] = signal.signal(number, self._note)
            while EARLY:
                self._note(EARLY.popleft(), None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number in ENDING:
            before, self._last = self._last, time.monotonic()
            if self._last - before < TWICE:
                return
        self.ending += number in ENDING
        if self.ending > PATIENCE:
            raise KeyboardInterrupt
        self.heed(number)
