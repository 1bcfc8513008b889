"""Random bits: Philox 4x32-10, the same words as :mod:`sigma_kernel.graph.philox`, in 64-bit arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigma_backend_numba.compiler.language import driver, i8, sel, task, u4, u8

WORD, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
FIRST, SECOND = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_FIRST, WEYL_SECOND = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10


@driver
def _block(block: Any, stream: Any, iteration: Any, scan: Any, key: Any, other: Any) -> Any:
    c0, c1, c2, c3 = u8(block) & WORD, u8(stream), u8(iteration), u8(scan)
    k0, k1 = u8(key), u8(other)
    for _ in range(ROUNDS):
        p0 = FIRST * c0
        p1 = SECOND * c2
        c0 = (p1 >> HALF) ^ c1 ^ k0
        c1 = p1 & WORD
        c2 = (p0 >> HALF) ^ c3 ^ k1
        c3 = p0 & WORD
        k0 = (k0 + WEYL_FIRST) & WORD
        k1 = (k1 + WEYL_SECOND) & WORD
    return u4(c0), u4(c1), u4(c2), u4(c3)


@task
def bits(out: Any, first: Any, last: Any, stream: Any, iteration: Any, scan: Any, key: Any, other: Any) -> None:
    """Write the words of the blocks from ``first`` up to ``last``, four per block."""
    for number in range(first, last):
        a, b, c, d = _block(number, stream, iteration, scan, key, other)
        place = i8(4) * (number - first)
        out[place] = a
        out[place + 1] = b
        out[place + 2] = c
        out[place + 3] = d


@driver
def word(element: Any, stream: Any, iteration: Any, scan: Any, key: Any, other: Any) -> Any:
    """Return the random word of one element."""
    a, b, c, d = _block(element >> i8(2), stream, iteration, scan, key, other)
    lane = element & i8(3)
    return sel(lane < i8(2), sel(lane == i8(0), a, b), sel(lane == i8(2), c, d))
