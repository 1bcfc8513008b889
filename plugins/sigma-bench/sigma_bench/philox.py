"""Philox 4x32-10 for the NumPy loop: plain NumPy with 64-bit products, into preallocated buffers.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.  Counter:
(element // 4, stream, iteration, scan); key: (lower word of the seed, upper word).
"""

from __future__ import annotations

import numpy as np

MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
WEYL = np.array([[0x9E3779B9], [0xBB67AE85]], np.uint64)
WORD, UPPER = np.uint64(0xFFFFFFFF), np.uint64(32)


class Philox:
    """Draw the bits of up to ``size`` elements of one stream under a key of two words."""

    def __init__(self, key: np.ndarray, stream: int, size: int) -> None:
        blocks = -(-size // 4)
        self.stream, self.scan = stream, 0
        self.keys = [key.astype(np.uint64)[:, None] + WEYL * np.uint64(i) & WORD for i in range(10)]
        self.blocks = np.arange(blocks, dtype=np.uint64)
        self.space = np.empty((3, 2, blocks), np.uint64)
        self.words = np.empty((blocks, 4), np.uint32)

    def bits(self, iteration: int, size: int) -> np.ndarray:
        """Return the bits of the first elements, uint32; the next call overwrites them."""
        n = -(-size // 4)
        even, odd, product = self.space[:, :, :n]  # words 0 and 2, words 1 and 3
        even[0], even[1], odd[0], odd[1] = self.blocks[:n], iteration, self.stream, self.scan
        for key in self.keys:
            np.multiply(even, MULTIPLIERS, out=product)
            low = product[::-1]  # each product goes to the other pair
            np.right_shift(low, UPPER, out=even)
            np.bitwise_xor(even, odd, out=even)
            np.bitwise_xor(even, key, out=even)
            np.bitwise_and(even, WORD, out=even)
            odd, product = low, odd
        self.words[:n, 0], self.words[:n, 1], self.words[:n, 2], self.words[:n, 3] = even[0], odd[0], even[1], odd[1]
        return self.words[:n].reshape(-1)[:size]
