"""Philox 4x32-10 with 64-bit products, in blocks that fit the second-level cache.

The bits are those of :mod:`sigma_kernel.graph.philox`, where they are explained.  Two words of a counter share an array
``(2, n)``, so that one call serves both; ``odd`` may have anything in its upper halves, ``even`` has zeros there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigma_kernel.graph.philox import MULTIPLIERS, ROUNDS, WEYL

BLOCKS = 12288  # at a time: arrays of 192 kB
MULTIPLIER = np.array(MULTIPLIERS, np.uint64)[:, None]
WORD, UPPER = np.uint64(0xFFFFFFFF), np.uint64(32)


def scratch_bytes(elements: int) -> int:
    """Return the bytes that :func:`fill` needs beside its result."""
    return 8 * 8 * min(BLOCKS, elements // 4 + 2)


def fill(out: np.ndarray, scratch: np.ndarray, key: tuple[int, int], first: int, tail: tuple[int, int, int]) -> None:
    """Write the bits of elements ``first`` and following into a flat uint32 array.

    ``tail`` are the last three words of every counter: stream, iteration, scan.
    """
    space, keys = scratch.view(np.uint64), _keys(key)
    for block, count, skip, part in _pieces(out, first):
        even, odd, other = (space[i * 2 * count : (i + 1) * 2 * count].reshape(2, count) for i in range(3))
        _two_rounds(np.arange(block, block + count, dtype=np.uint64), even, odd, keys, tail)
        even, odd = _rounds(even, odd, other, keys[2:])
        words = space[6 * count : 8 * count].view(np.uint32).reshape(count, 4)
        words[:, 0], words[:, 1], words[:, 2], words[:, 3] = even[0], odd[0], even[1], odd[1]
        part[...] = words.reshape(-1)[skip : skip + part.size]


def _two_rounds(
    blocks: np.ndarray, even: np.ndarray, odd: np.ndarray, keys: list[np.ndarray], tail: tuple[int, int, int]
) -> None:
    """Do the first rounds, in which three words, then two, are the same in all blocks."""
    (a, b), (c, d) = (key.ravel().tolist() for key in keys[:2])
    high, low = divmod(tail[1] * MULTIPLIERS[1], 1 << 32)
    far, near = divmod((high ^ tail[0] ^ a) * MULTIPLIERS[0], 1 << 32)
    np.bitwise_and(blocks, WORD, blocks)
    np.multiply(blocks, MULTIPLIER[0], blocks)
    np.right_shift(blocks, UPPER, even[0])
    np.bitwise_xor(even[0], np.uint64(tail[2] ^ b), even[0])
    np.multiply(even[0], MULTIPLIER[1], odd[0])
    np.right_shift(odd[0], UPPER, even[0])
    np.bitwise_xor(even[0], np.uint64(low ^ c), even[0])
    np.bitwise_xor(blocks, np.uint64(far ^ d), even[1])
    np.bitwise_and(even[1], WORD, even[1])
    odd[1] = near


def _rounds(
    even: np.ndarray, odd: np.ndarray, product: np.ndarray, keys: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    for key in keys:
        np.multiply(even, MULTIPLIER, product)
        crossed = product[::-1]  # each upper half goes to the other word
        np.right_shift(crossed, UPPER, even)
        np.bitwise_xor(even, odd, even)
        np.bitwise_xor(even, key, even)
        np.bitwise_and(even, WORD, even)
        product, odd = odd, crossed
    return even, odd


def _keys(key: tuple[int, int]) -> list[np.ndarray]:
    """Return the key of each round."""
    words = np.array(key, np.uint64) + np.arange(ROUNDS, dtype=np.uint64)[:, None] * np.array(WEYL, np.uint64)
    return list((words & WORD)[:, :, None])


def _pieces(out: np.ndarray, first: int) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """Yield the first block, the number of blocks, the elements to skip and where the others go."""
    done = 0
    while done < out.size:
        block, skip = divmod(first + done, 4)
        part = out[done : done + 4 * BLOCKS - skip]
        yield block, (skip + part.size + 3) // 4, skip, part
        done += part.size
