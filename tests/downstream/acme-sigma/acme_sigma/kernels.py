"""Kernels of softsign."""

import numpy as np


def softsign_of_number(x: float) -> float:
    """Return softsign of a number."""
    return x / (abs(x) + np.float32(1))


def softsign_of_array(x: np.ndarray) -> np.ndarray:
    """Return softsign of each element."""
    size = np.abs(x)
    size += 1
    return np.divide(x, size, out=size)
