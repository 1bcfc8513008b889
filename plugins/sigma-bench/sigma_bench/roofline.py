"""Roofline of the machine: peak rates of matrix products and memory, measured in a separate process."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from sigma_bench.cores import cores

SIDE, BYTES, TIMES = 2048, 1 << 28, 5


class Roofline:
    """Matrices to multiply and memory to copy, for measuring peak rates."""

    def __init__(self, side: int = SIDE, size: int = BYTES) -> None:
        self._matrices = np.random.default_rng(0).random((3, side, side), np.float32)
        self._words = np.zeros((2, size // 2), np.uint8)
        self._pool = ThreadPoolExecutor(cores())

    def rates(self) -> dict[str, float]:
        """Return the best of some measurements: float32 operations, and bytes read and written, per second."""
        x, y, product = self._matrices
        work, moved = 2.0 * len(x) ** 3, 2.0 * self._words.shape[1]
        multiply, copy = partial(np.matmul, x, y, out=product), self._copy
        best = [min(_seconds(call) for _ in range(TIMES)) for call in (multiply, copy)]
        return {"float32_flops_per_s": work / best[0], "memory_bytes_per_s": moved / best[1]}

    def _copy(self) -> None:
        """Copy half of the memory to the other half, each core its share: a byte is read and one is written."""
        shares = zip(*(np.array_split(half, cores()) for half in reversed(self._words)), strict=True)
        list(self._pool.map(lambda share: np.copyto(*share), shares))


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
