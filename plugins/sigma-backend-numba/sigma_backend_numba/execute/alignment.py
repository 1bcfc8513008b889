"""Allocate arrays aligned to cache lines, so that threads share none, and large ones in huge pages."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from math import prod

import numpy as np

from sigma_kernel.graph import ALIGNMENT

LARGE = 1 << 20  # bytes from which kept memory uses huge pages
HUGE = 1 << 21  # bytes of a huge page


def allocate_aligned(size: int) -> np.ndarray:
    """Return bytes aligned to 64."""
    return _align(np.empty(size + ALIGNMENT, np.uint8), size, ALIGNMENT)


def allocate_huge(size: int) -> np.ndarray:
    """Return bytes aligned to 64 for many steps: in huge pages if they are many, and the system (Linux) has such pages.

    A product reads rows that are pages apart, and translating their addresses takes time.  Raises MemoryError if there
    is not enough memory.
    """
    if size >= LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError, OverflowError):  # this kernel has no huge pages, or not enough memory
            memory = mmap.mmap(-1, size + 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            memory.madvise(mmap.MADV_HUGEPAGE)
            return _align(np.frombuffer(memory, np.uint8), size, HUGE)
    return allocate_aligned(size)


def _align(space: np.ndarray, size: int, side: int) -> np.ndarray:
    """Return bytes of a space from a multiple of a side on."""
    start = -space.ctypes.data % side
    return space[start : start + size]


def empty(shape: Sequence[int], dtype: str | np.dtype) -> np.ndarray:
    """Return an uninitialised array."""
    return allocate_aligned(prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def copy(array: np.ndarray) -> np.ndarray:
    """Return an aligned copy, to keep."""
    memory = allocate_huge(array.nbytes).view(array.dtype).reshape(array.shape)
    memory[...] = array
    return memory
