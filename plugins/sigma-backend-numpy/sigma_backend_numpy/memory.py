"""Aligned allocation: arrays that start at a cache line, for vector instructions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from sigma_backend_numpy.plan import Storage
from sigma_kernel.graph import ALIGNMENT


def allocate_aligned(size: int) -> np.ndarray:
    """Return bytes aligned to 64."""
    space = np.empty(size + ALIGNMENT, np.uint8)
    start = -space.ctypes.data % ALIGNMENT
    return space[start : start + size]


def empty(shape: Sequence[int], dtype: str | np.dtype) -> np.ndarray:
    """Return an uninitialised array."""
    if prod(shape) < 1024:  # too small for alignment to matter
        return np.empty(shape, dtype)
    return allocate_aligned(prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def piece(memory: np.ndarray, storage: Storage) -> np.ndarray:
    """Return the bytes that the plan assigned to a value."""
    return memory[storage.offset : storage.end]


def view_array(memory: np.ndarray, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Return an array at the beginning of some bytes."""
    return memory[: prod(shape) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)
