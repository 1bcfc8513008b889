"""Test how running time grows with input size, by counting executed lines instead of measuring time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

TWICE = 2.2  # allowed growth for twice the size; quadratic growth gives 4


def steps(action: Callable[[], Any]) -> int:
    """Return the number of lines that an action executes in this thread; each loop turn and each call counts."""
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
    """Return the ratio of steps for twice the size; ``work(size)`` prepares and returns the action to count."""
    work(size)()  # imports and caches
    return steps(work(2 * size)) / steps(work(size))
