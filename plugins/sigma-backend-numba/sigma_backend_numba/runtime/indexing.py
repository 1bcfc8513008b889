"""Index checks, and the part of a window inside an axis."""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import driver, i8


@driver
def check_index(index: Any, side: Any, fault: Any) -> Any:
    """Return a checked index: one outside the axis records a fault and becomes 0."""
    place = index
    if place < 0 or place >= side:
        fault[0] = i8(1)
        place = i8(0)
    return place


@driver
def span(offset: Any, stride: Any, side: Any, count: Any) -> Any:
    """Return the range of windows for which ``number * stride + offset`` is inside an axis."""
    first = min(max((stride - 1 - offset) // stride, i8(0)), count)
    last = min(max((side - 1 - offset) // stride + 1, first), count)
    return first, last
