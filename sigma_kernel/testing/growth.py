"""How work grows with what it is done for, counted instead of timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

TWICE = 2.2  # times the work that twice as much may take; work that grows with the square takes 4 times as much


def steps(action: Callable[[], Any]) -> int:
    """Return how many lines an action runs in this thread, each turn of a loop and each call being one at least."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event in ("call", "line")
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[int], Callable[[], Any]], size: int) -> float:
    """Return how many times as many steps are done for twice the size; ``work`` prepares what is counted."""
    work(size)()  # what is imported or remembered the first time
    return steps(work(2 * size)) / steps(work(size))
