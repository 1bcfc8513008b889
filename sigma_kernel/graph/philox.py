"""Counter-based random bits: Philox 4x32-10, written once against an array namespace.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.

The bits are a pure function of (key; element // 4, stream, iteration, scan), the element counting through the whole
tensor (up to 2^34 elements, then they repeat), so that a shard of it has the same bits wherever it is drawn.  Products
go by 16-bit halves, because some namespaces have no unsigned 64-bit integers, and some no unsigned arithmetic at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.namespace import WORD, Array, Namespace

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)  # what is added to the key between rounds
ROUNDS = 10
HALF = 0xFFFF


def words(seed: int) -> tuple[int, int]:
    """Return a seed as the two words of a key, the lower one first.  A seed outside 64 bits is a SigmaGraphError."""
    if not 0 <= seed < 1 << 64:
        raise SigmaGraphError(f"seed: {seed} does not fit. Use a whole number from 0 to 2^64 - 1.")
    return seed & WORD, seed >> 32


def random_bits(
    ns: Namespace, key: Array, iteration: Array, row: Array, scan: Array, *, shape: Sequence[int], stream: int
) -> Array:
    """Return uint32 bits of the given shape; ``row`` is the place of its first row in the whole tensor."""
    size, width = prod(shape), prod(shape[1:])
    if not size:
        return ns.xp.zeros(tuple(shape), dtype=ns.dtype("uint32"))
    block, lane = _place(ns, row, width)
    blocks = (size + 3) // 4 + (width % 4 != 0)
    counter = (block + ns.carried(ns.xp.arange(blocks)) & ns.carried(WORD), stream, iteration, scan)
    drawn = ns.xp.stack(philox(ns, counter, (key[0], key[1])), axis=-1)
    flat = ns.xp.reshape(drawn, (-1,))
    if width % 4:  # only then can a shard begin inside a block
        flat = ns.xp.take(flat, lane + ns.carried(ns.xp.arange(size)), axis=0)
    return ns.xp.reshape(ns.cast(flat[:size], "uint32"), tuple(shape))


def philox(ns: Namespace, counter: Sequence[Array | int], key: Sequence[Array | int]) -> tuple[Array, ...]:
    """Return the four words of the blocks with these counters (four words, which broadcast) under a key of two."""
    c0, c1, c2, c3 = ns.xp.broadcast_arrays(*map(ns.carried, counter))
    k0, k1 = map(ns.carried, key)
    mask, weyl = ns.carried(WORD), [ns.carried(w) for w in WEYL]
    for _ in range(ROUNDS):
        high0, low0 = product(ns, c0, MULTIPLIERS[0])
        high1, low1 = product(ns, c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + weyl[0] & mask, k1 + weyl[1] & mask
    return c0, c1, c2, c3


def product(ns: Namespace, x: Array, y: int) -> tuple[Array, Array]:
    """Return the upper and the lower word of the product of two words."""
    half, mask, shift = ns.carried(HALF), ns.carried(WORD), ns.carried(16)
    y0, y1 = ns.carried(y & HALF), ns.carried(y >> 16)
    x0, x1 = x & half, x >> shift
    p00, p01, p10 = x0 * y0, x0 * y1, x1 * y0
    middle = (p00 >> shift) + (p01 & half) + (p10 & half)
    low = (middle << shift & mask) | (p00 & half)
    return x1 * y1 + (p01 >> shift) + (p10 >> shift) + (middle >> shift), low


def _place(ns: Namespace, row: Array, width: int) -> tuple[Array, Array]:
    """Return block and lane of the first element of a row: ``row * width`` has up to 64 bits."""
    high, low = product(ns, ns.carried(row), width)
    return high << ns.carried(30) & ns.carried(WORD) | low >> ns.carried(2), low & ns.carried(3)
