"""The cost model: rough nanoseconds on one thread, by which work is cut.  It is the same on every machine.

Measured on two cores of an AMD EPYC, between which a cache line travels in 170 ns.
"""

from __future__ import annotations

FLOPS = 80  # of a product, in a nanosecond
ELEMENTS = 0.8  # of a loop, in a nanosecond
PIECE = 3_000  # nanoseconds: a piece for a thread
STAGE = 4_000  # nanoseconds until threads know of each other that a stage is done, and have what was made in it
PYTHON = 20_000  # nanoseconds: a call of Python from a program
LESS = 0.85  # of the time on one thread: what two must do with


def product(work: float) -> float:
    """Return what a product of so many floating-point operations costs."""
    return work / FLOPS


def loop(elements: float) -> float:
    """Return what a loop over so many elements costs."""
    return elements / ELEMENTS
