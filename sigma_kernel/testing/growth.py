"""How work grows with what it is done for, counted instead of timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

TWICE = 2.2  # times the work that twice as much may take; work that grows with the square takes 4 times as much


def calls(action: Callable[[], Any]) -> int:
    """Return how many functions an action calls in this thread, built-in ones and steps of generators included."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def growth(work: Callable[[int], Callable[[], Any]], size: int) -> float:
    """Return how many times as many functions are called for twice the size; ``work`` prepares what is counted."""
    work(size)()  # what is imported or remembered the first time
    return calls(work(2 * size)) / calls(work(size))
