"""Synchronise the threads of one burst, and flush denormal numbers to zero while they compute.

A stage ends when all of its pieces are done, not when all threads have arrived: a preempted thread without a piece
delays nobody.  A waiting thread spins, then yields its core, then sleeps: on a busy machine the thread that runs the
piece may need this very core.  Denormals and pauses are supported on x86-64 and aarch64; elsewhere a waiting thread
spins without a pause, and denormals are kept.
"""

from __future__ import annotations

import platform
from typing import Any

from sigma_backend_numba.compiler.intrinsics import X86
from sigma_backend_numba.compiler.language import (
    LanguageWord,
    arrive,
    control,
    driver,
    i8,
    pause,
    publish,
    restore,
    seen,
    swapped,
)

SPINS, YIELDS = 1000, 50  # attempts before a waiting thread yields its core, and before it sleeps
NAP = 0 if platform.system() == "Windows" else 20  # microseconds; milliseconds there
UNITS, UNIT = 16, (1 << 16) - 1  # bits of a ticket that number pieces; those above number stages
ZERO = 0x8040 if X86 else 1 << 24  # MXCSR: flush to zero, denormals are zero; FPCR: flush to zero
sigma_yield, sigma_nap = LanguageWord("sigma_yield"), LanguageWord("sigma_nap")


@driver
def flush() -> Any:
    """Flush denormals to zero from now on; return the previous control word, for :func:`restore`."""
    before = control()
    restore(before | ZERO)
    return before


@driver
def back_off(spins: Any) -> Any:
    """Wait a little, for longer the more often it was called in a row."""
    if spins < SPINS:
        pause()
    elif spins < SPINS + YIELDS:
        sigma_yield()
    else:
        sigma_nap(NAP)
    return spins + 1


@driver
def claim(ticket: Any, stage: Any, units: Any) -> Any:
    """Claim a piece of a stage; return its number, or -1 if none is left and all are done."""
    spins = 0
    while True:
        word = seen(ticket)
        number = word & UNIT
        if word >> UNITS > stage:
            return i8(-1)
        if number >= units:
            spins = back_off(spins)
        elif swapped(ticket, word, word + 1):
            return number


@driver
def finish(ticket: Any, done: Any, stage: Any, units: Any) -> None:
    """Mark a piece as done; the last one opens the next stage."""
    if arrive(done) + 1 == units:
        publish(done, i8(0))
        publish(ticket, (stage + 1) << UNITS)
