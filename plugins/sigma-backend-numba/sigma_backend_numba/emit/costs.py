"""The cost model: rough nanoseconds on one thread, used to cut work.  It is the same on every machine.

Measured on two cores of an AMD EPYC, between which a cache line travels in 170 ns.
"""

from __future__ import annotations

FLOPS = 80  # floating-point operations of a product per nanosecond
ELEMENTS = 0.8  # elements of a loop per nanosecond
COSTLY = 4  # times as long as others: elements with exponentials, logarithms or the like
PIECE = 3_000  # nanoseconds of work per piece
STAGE = 4_000  # nanoseconds to synchronise threads after a stage and to share its results
PYTHON = 20_000  # nanoseconds of a call from a program into Python
LESS = 0.85  # fraction of the single-thread time that two threads must stay below


def product(work: float) -> float:
    """Return the cost of a product with this many floating-point operations."""
    return work / FLOPS


def loop(elements: float, costly: bool = False) -> float:
    """Return the cost of a loop over this many elements."""
    return elements / ELEMENTS * (COSTLY if costly else 1)
