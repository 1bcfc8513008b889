"""Counter-based random bits, Philox 4x32-10: for any array namespace, and a faster version in NumPy.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.

The bits are a function of (key; element // 4, stream, iteration, scan). Elements are numbered through the whole tensor
(the bits repeat after 2^34 elements), so that a shard has the same bits wherever it is drawn. Products are computed
from 16-bit halves, because some namespaces lack unsigned 64-bit integers, or unsigned arithmetic altogether.
:func:`fill` uses 64-bit products, and blocks that fit the second-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.namespace import WORD, Array, Namespace

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key between rounds
ROUNDS = 10
HALF = 0xFFFF
BLOCKS = 12288  # per pass of :func:`fill`: arrays of 192 kB


def words(seed: int) -> tuple[int, int]:
    """Return a seed as the two words of a key, lower word first; raises SigmaGraphError outside of 64 bits."""
    if not 0 <= seed < 1 << 64:
        raise SigmaGraphError(f"seed: {seed} does not fit. Use a whole number from 0 to 2^64 - 1.")
    return seed & WORD, seed >> 32


def random_bits(
    ns: Namespace, key: Array, iteration: Array, row: Array, scan: Array, *, shape: Sequence[int], stream: int
) -> Array:
    """Return uint32 bits of the given shape; ``row`` is the index of its first row in the whole tensor."""
    size, width = prod(shape), prod(shape[1:])
    if not size:
        return ns.xp.zeros(tuple(shape), dtype=ns.dtype("uint32"))
    block, lane = _place(ns, row, width)
    blocks = (size + 3) // 4 + (width % 4 != 0)
    counter = (block + ns.to_carrier(ns.xp.arange(blocks)) & ns.to_carrier(WORD), stream, iteration, scan)
    drawn = ns.xp.stack(philox(ns, counter, (key[0], key[1])), axis=-1)
    flat = ns.xp.reshape(drawn, (-1,))
    if width % 4:  # else a shard begins at a block
        flat = ns.xp.take(flat, lane + ns.to_carrier(ns.xp.arange(size)), axis=0)
    return ns.xp.reshape(ns.cast(flat[:size], "uint32"), tuple(shape))


def philox(ns: Namespace, counter: Sequence[Array | int], key: Sequence[Array | int]) -> tuple[Array, ...]:
    """Return the four words of each block, given counters of four words, which broadcast, and a key of two."""
    c0, c1, c2, c3 = ns.xp.broadcast_arrays(*map(ns.to_carrier, counter))
    k0, k1 = map(ns.to_carrier, key)
    mask, weyl = ns.to_carrier(WORD), [ns.to_carrier(w) for w in WEYL]
    for _ in range(ROUNDS):
        high0, low0 = product(ns, c0, MULTIPLIERS[0])
        high1, low1 = product(ns, c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + weyl[0] & mask, k1 + weyl[1] & mask
    return c0, c1, c2, c3


def product(ns: Namespace, x: Array, y: int) -> tuple[Array, Array]:
    """Return the upper and lower word of the product of two words."""
    half, mask, shift = ns.to_carrier(HALF), ns.to_carrier(WORD), ns.to_carrier(16)
    y0, y1 = ns.to_carrier(y & HALF), ns.to_carrier(y >> 16)
    x0, x1 = x & half, x >> shift
    p00, p01, p10 = x0 * y0, x0 * y1, x1 * y0
    middle = (p00 >> shift) + (p01 & half) + (p10 & half)
    low = (middle << shift & mask) | (p00 & half)
    return x1 * y1 + (p01 >> shift) + (p10 >> shift) + (middle >> shift), low


def _place(ns: Namespace, row: Array, width: int) -> tuple[Array, Array]:
    """Return block and lane of the first element of a row; ``row * width`` has up to 64 bits."""
    high, low = product(ns, ns.to_carrier(row), width)
    return high << ns.to_carrier(30) & ns.to_carrier(WORD) | low >> ns.to_carrier(2), low & ns.to_carrier(3)


# -- on the host -------------------------------------------------------------------------------------------------------
def scratch_bytes(elements: int) -> int:
    """Return the bytes of scratch memory that :func:`fill` needs."""
    return 8 * 8 * min(BLOCKS, elements // 4 + 2)


def fill(out: np.ndarray, scratch: np.ndarray, key: tuple[int, int], first: int, tail: tuple[int, int, int]) -> None:
    """Write the bits of elements ``first`` and following into a flat uint32 array.

    ``tail`` are the last three words of every counter: stream, iteration, scan.
    """
    for block, count, skip, part in _pieces(out, first):
        counters = np.arange(block, block + count, dtype=np.uint64) & np.uint64(WORD)
        part[...] = host_blocks((counters, *tail), key, scratch).reshape(-1)[skip : skip + part.size]


def host_blocks(
    counter: tuple[np.ndarray, np.ndarray | int, np.ndarray | int, np.ndarray | int],
    key: tuple[int, int],
    scratch: np.ndarray,
) -> np.ndarray:
    """Return the words ``(n, 4)`` of the blocks with these counters, uint32, inside 64 n bytes of ``scratch``."""
    n = len(counter[0])
    space = scratch.view(np.uint64)
    even, odd, spare = space[: 6 * n].reshape(3, 2, n)  # two words of a counter each: one call serves both
    even[0], odd[0], even[1], odd[1] = counter
    words = space[6 * n : 8 * n].view(np.uint32).reshape(n, 4)
    even, odd = _rounds(even, odd, spare, _keys(key))
    words[:, 0], words[:, 1], words[:, 2], words[:, 3] = even[0], odd[0], even[1], odd[1]
    return words


def _rounds(even: np.ndarray, odd: np.ndarray, spare: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Apply all rounds; the upper halves of words 1 and 3 are undefined."""
    multipliers, mask, shift = np.array(MULTIPLIERS, np.uint64)[:, None], np.uint64(WORD), np.uint64(32)
    for key in keys:
        np.multiply(even, multipliers, spare)
        crossed = spare[::-1]  # each upper half belongs to the other word
        np.right_shift(crossed, shift, even)
        np.bitwise_xor(even, odd, even)
        np.bitwise_xor(even, key, even)
        np.bitwise_and(even, mask, even)
        spare, odd = odd, crossed
    return even, odd


def _keys(key: tuple[int, int]) -> np.ndarray:
    """Return the key of each round."""
    words = np.array(key, np.uint64) + np.arange(ROUNDS, dtype=np.uint64)[:, None] * np.array(WEYL, np.uint64)
    return (words & np.uint64(WORD))[:, :, None]


def _pieces(out: np.ndarray, first: int) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """Yield the first block, the number of blocks, the elements to skip, and the destination of the others."""
    done = 0
    while done < out.size:
        block, skip = divmod(first + done, 4)
        part = out[done : done + 4 * BLOCKS - skip]
        yield block, (skip + part.size + 3) // 4, skip, part
        done += part.size
