"""Allocate arrays aligned to cache lines, so that no line is shared by two threads' rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from sigma_kernel.graph import ALIGNMENT


def aligned(size: int) -> np.ndarray:
    """Return bytes aligned to 64."""
    space = np.empty(size + ALIGNMENT, np.uint8)
    start = -space.ctypes.data % ALIGNMENT
    return space[start : start + size]


def empty(shape: Sequence[int], dtype: str | np.dtype) -> np.ndarray:
    """Return an uninitialised array."""
    return aligned(prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def copy(array: np.ndarray) -> np.ndarray:
    """Return an aligned copy."""
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made
